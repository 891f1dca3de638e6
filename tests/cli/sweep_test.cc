// `attend sweep` end to end, on rows that train in a moment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "attend/base/files.h"
#include "tests/cli/job.h"

namespace attend {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kBase =
    "base:\n"
    "  preset: tiny\n"
    "  layers: 1\n"
    "  d_model: 32\n"
    "  d_ff: 64\n"
    "  heads: 2\n"
    "  vocabulary_size: 300\n"
    "  batch_tokens: 200\n"
    "  warmup: 10\n"
    "  stop_after: 12u\n"
    "  checkpoint_every: 4u\n"
    "  validate_every: 6u\n"
    "  log_every: 4\n"
    "  valid_beam_size: 1\n"
    "  workers: 2\n";

class Sweep : public testing::Test {
 protected:
  Sweep() {
    folder_.file("a", sentences(false));
    folder_.file("b", sentences(true));
    folder_.file("va", "one two three\nfour five\n");
    folder_.file("vb", "ONE TWO THREE\nFOUR FIVE\n");
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string sweep(const std::string& rows) const {
    return folder_.file("sweep.yaml", std::string(kBase) + "rows:\n" + rows);
  }
  std::vector<std::string> arguments(const std::string& file,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"sweep",          file,       "--run",          path("runs"),
                                    "--train-source", path("a"),  "--train-target", path("b"),
                                    "--valid-source", path("va"), "--valid-target", path("vb")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string model(const std::string& row) const {
    return contents_of(path("runs/" + row + "/model.safetensors"));
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(path(name)); }

  TemporaryFolder folder_;
};

TEST_F(Sweep, TrainsEveryRowAndPrintsTheTable) {
  const std::string file =
      sweep("  base:\n  one-head: {heads: 1}\n  wide: {d_ff: 128, dropout: 0}\n");
  const Finished done =
      run(arguments(file, {"--test-source", path("va"), "--test-target", path("vb")}));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith("row       what differs "));
  EXPECT_THAT(
      done.out,
      ContainsRegex("\nbase +[0-9]+ [0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +0:[0-9]+ +[0-9]+\n"));
  EXPECT_THAT(done.out, ContainsRegex("\none-head  heads 1 "));
  EXPECT_THAT(done.out, ContainsRegex("\nwide +d_ff 128, dropout 0 "));
  EXPECT_THAT(contents_of(path("runs/table.md")), ContainsRegex("\\| one-head \\| heads 1 \\| "));
  EXPECT_THAT(contents_of(path("runs/table.tsv")), ContainsRegex("\none-head\theads 1\t"));
  EXPECT_THAT(contents_of(path("runs/base/test.json")), HasSubstr("nrefs:1|case:mixed"));
  EXPECT_TRUE(is_there("runs/wide/test.hyp"));
  // One tokenizer and one cache for all of them.
  const auto entries = [&](const std::string& name) {
    const std::filesystem::directory_iterator begin(path(name));
    return std::distance(begin, std::filesystem::directory_iterator());
  };
  EXPECT_EQ(entries("runs/tokenizers"), 1);
  EXPECT_EQ(entries("runs/cache"), 1);
  EXPECT_FALSE(is_there("runs/base/cache"));

  const std::string before = model("base");
  const Finished again = run(arguments(file));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, done.out);
  EXPECT_THAT(again.err, HasSubstr("row wide is done"));
  EXPECT_THAT(again.err, Not(HasSubstr("update ")));
  EXPECT_EQ(model("base"), before);
  EXPECT_EQ(run({"sweep", file, "--run", path("runs"), "--show"}).out, done.out);
}

TEST_F(Sweep, TheTestScoreIsOfTheModelAndTheTextThatItIsShownFor) {
  const std::string file = sweep("  base:\n");
  const std::vector<std::string> test = {"--test-source", path("va"), "--test-target", path("vb")};
  ASSERT_EQ(run(arguments(file, test)).status, 0);
  EXPECT_THAT(contents_of(path("runs/table.tsv")), HasSubstr("test BLEU"));
  const std::vector<std::string> show = {"sweep", file, "--run", path("runs"), "--show"};
  const auto show_with = [&](const std::string& source) {
    std::vector<std::string> all = show;
    all.insert(all.end(), {"--test-source", path(source), "--test-target", path("vb")});
    return run(all).out;
  };
  EXPECT_THAT(show_with("va"), HasSubstr("test BLEU"));
  EXPECT_THAT(show_with("vb"), Not(HasSubstr("test BLEU")));
  const Finished further = run(arguments(file, {"--stop-after", "16u"}));
  ASSERT_EQ(further.status, 0) << further.err;
  EXPECT_THAT(further.out, Not(HasSubstr("test BLEU")));
}

TEST_F(Sweep, ARowIsTheSameAsTheRunAlone) {
  const std::string file = sweep("  one-head: {heads: 1}\n");
  ASSERT_EQ(run(arguments(file)).status, 0);
  const Finished alone =
      run({"train", "--config", path("runs/one-head/recipe.yaml"), "--run", path("alone")});
  ASSERT_EQ(alone.status, 0) << alone.err;
  EXPECT_EQ(contents_of(path("alone/model.safetensors")), model("one-head"));
}

TEST_F(Sweep, GoesOnAfterAKillAndAfterASignal) {
  const std::string file = sweep("  base:\n  one-head: {heads: 1}\n");
  ASSERT_EQ(run(arguments(file)).status, 0);
  const std::string base = model("base"), one_head = model("one-head");
  for (const int signal : {SIGKILL, SIGTERM}) {
    std::filesystem::remove_all(path("runs"));
    const std::string cue =
        path(signal == SIGKILL ? "runs/base/checkpoints" : "runs/one-head/checkpoints");
    const Finished cut = run_until_file(arguments(file, {"--stop-after", "150u"}), cue, signal);
    EXPECT_EQ(cut.status, 128 + signal);
    if (signal == SIGTERM) {
      EXPECT_THAT(cut.out, ContainsRegex("\none-head .*after [0-9]+ updates"));
    }
    // The limit may change, and each row goes on from its checkpoint.
    const Finished resumed = run(arguments(file, {"--stop-after", "160u"}));
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("finished: stop_after 160u reached"));
  }
  std::filesystem::remove_all(path("runs"));
  const Finished killed =
      run_until_file(arguments(file), path("runs/one-head/checkpoints"), SIGKILL);
  const Finished resumed = run(arguments(file));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(model("base"), base);
  EXPECT_EQ(model("one-head"), one_head);
  EXPECT_EQ(killed.status, 128 + SIGKILL);
}

TEST_F(Sweep, ARowThatWasChangedIsSaidAndTheOthersGoOn) {
  ASSERT_EQ(run(arguments(sweep("  base:\n  other: {heads: 1}\n"))).status, 0);
  const std::string before = model("other");
  const Finished changed = run(arguments(sweep("  other: {heads: 4}\n  new: {d_ff: 32}\n")));
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.err, HasSubstr("row other: its run has other options (heads: 1 in the run, 4 "
                                     "asked for); remove " +
                                     path("runs/other")));
  EXPECT_THAT(changed.err, HasSubstr("1 of 2 rows failed: other"));
  EXPECT_THAT(changed.out, ContainsRegex("\nother .*failed: its run has other options"));
  EXPECT_TRUE(is_there("runs/new/model.safetensors"));
  EXPECT_EQ(model("other"), before);
  // No figure of the run stands beside options that it does not have.
  const std::string show = "\nother +heads 4 +its run has other options";
  EXPECT_THAT(run({"sweep", path("sweep.yaml"), "--run", path("runs"), "--show"}).out,
              ContainsRegex(show));
  EXPECT_THAT(changed.out, ContainsRegex("other +heads 4 +failed: its run has other options"));

  const Finished shorter = run(arguments(sweep("  base:\n"), {"--stop-after", "8u"}));
  EXPECT_EQ(shorter.status, 1);
  EXPECT_THAT(shorter.err,
              HasSubstr("row base: its run went on to stop_after 12u, further than 8u"));
  const auto shown = [&](const std::string& limit) {
    return run({"sweep", sweep("  base:\n"), "--run", path("runs"), "--show", "--stop-after",
                limit})
        .out;
  };
  EXPECT_THAT(shown("8u"), HasSubstr("went on to stop_after 12u"));
  EXPECT_THAT(shown("40u"), HasSubstr("after 12 updates"));
}

TEST_F(Sweep, RowsOnDifferentTextAreSaid) {
  ASSERT_EQ(run(arguments(sweep("  base:\n"))).status, 0);
  folder_.file("va", "one two three\nsix five\n");
  folder_.file("a", sentences(true));
  const Finished done = run(arguments(sweep("  base:\n  new: {heads: 1}\n")));
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("rows base and new were trained on different text"));
  EXPECT_THAT(done.err, HasSubstr("rows base and new were validated on different text"));
}

TEST_F(Sweep, ARowThatFailsIsSaidAndTheOthersGoOn) {
  const std::string file = sweep(
      "  bad: {learning_rate: 1e30, warmup: 1, max_bad_steps: 2}\n  base:\n"
      "  inf: {learning_rate: 1e6}\n");
  const Finished done = run(arguments(file));
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("row bad: 2 updates in a row had a loss or gradient"));
  EXPECT_THAT(done.out, ContainsRegex("\nbad .*failed: 2 updates in a row"));
  EXPECT_TRUE(is_there("runs/base/model.safetensors"));
  EXPECT_THAT(done.out, ContainsRegex("\ninf .* inf .* diverged\n"));
  EXPECT_THAT(run({"sweep", file, "--run", path("runs"), "--show"}).out,
              ContainsRegex("\nbad .*failed: 2 updates in a row"));
}

TEST_F(Sweep, WhatIsWrongInTheFileIsSaidBeforeAnythingIsTrained) {
  struct Case {
    std::string text, message;
  };
  const std::vector<Case> cases = {
      {"rows:\n  a: {head: 1}\n", ":2: there is no option \"head\"; did you mean \"heads\"?"},
      {"rows:\n  a:\n  a:\n", ":3: the row a is there twice"},
      {"rows:\n  ../a:\n", ":2: a row cannot be named \"../a\""},
      {"rows:\n  a: {d_model: 30, heads: 4}\n", ":2: row a: "},
      {"rows:\n  a: {run: b}\n", "follow from --run"},
      {"rows:\n", "there are no rows"},
      {"rows: [a, b]\n", ":1: the rows have no names"},
      {"rows:\n  \"\\0b\":\n", ":2: a row cannot be named \"?b\": its name is"},
      {"rows:\n  table.md:\n", ":2: a row cannot be named \"table.md\", as what all rows share"},
      {"rows:\n  tokenizers:\n", ":2: a row cannot be named \"tokenizers\""},
      {"rows:\n  a: {dry_run: true}\n", "give the flag --dry-run"},
      {"base: {dry_run: true}\nrows:\n  a:\n", "give the flag --dry-run"},
      {"rows:\n  a:\n  b: {workers: 99999}\n", ":3: row b: workers: found 99999"},
      {"base: {heads: 1}\n", "there are no rows"},
      {"lines:\n  a:\n", ":1: found \"lines\", expected config, base and rows"},
      {"config: none.yaml\nrows:\n  a:\n", ":1: config: cannot open"},
      {"rows: [\n", "not YAML"},
      {"", "expected config, base and rows"},
  };
  for (const Case& each : cases) {
    const std::string file = folder_.file("bad.yaml", each.text);
    const Finished refused = run(arguments(file));
    EXPECT_EQ(refused.status, 2) << each.text;
    EXPECT_THAT(refused.err, HasSubstr(each.message)) << each.text;
  }
  EXPECT_THAT(run({"sweep", "--run", path("runs")}).err, HasSubstr("FILE is missing"));
  EXPECT_THAT(run({"sweep", sweep("  a:\n")}).err, HasSubstr("--run DIR is missing"));
  EXPECT_THAT(run({"sweep", sweep("  a:\n"), "--run", path("runs")}).err,
              HasSubstr("row a: there is no training data"));
  EXPECT_THAT(run(arguments(sweep("  a:\n"), {"--test-source", path("va")})).err,
              HasSubstr("test_source and test_target go together"));
  EXPECT_FALSE(is_there("runs"));
}

TEST_F(Sweep, WhatRowsReadIsCheckedBeforeTheFirstIsTrained) {
  folder_.file("short", "one\n");
  folder_.file("empty", "");
  struct Case {
    std::string rows;
    std::vector<std::string> flags;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"  a:\n  b: {tokenizer: nosuch.model}\n", {}, "row b: cannot open nosuch.model"},
      {"  a:\n  b: {train_source: nosuch.en}\n", {}, "row b: cannot open nosuch.en"},
      {"  a:\n  b: {valid_source: nosuch.en}\n", {}, "row b: cannot open nosuch.en"},
      {"  a:\n", {"--test-source", "nosuch.en", "--test-target", path("vb")}, "nosuch.en"},
      {"  a:\n", {"--test-source", path("va"), "--test-target", path("short")}, "has 2 lines but"},
      {"  a:\n", {"--test-source", path("empty"), "--test-target", path("empty")}, "is empty"},
  };
  for (const Case& each : cases) {
    const Finished refused = run(arguments(sweep(each.rows), each.flags));
    EXPECT_EQ(refused.status, 1) << each.message;
    EXPECT_THAT(refused.err, HasSubstr(each.message));
    EXPECT_FALSE(is_there("runs")) << each.message;
  }
  // Rows that are done need their text no more.
  ASSERT_EQ(run(arguments(sweep("  a:\n"))).status, 0);
  std::filesystem::remove(path("a"));
  EXPECT_EQ(run(arguments(sweep("  a:\n"))).status, 0);
}

TEST_F(Sweep, TwoAtOnceInOneFolderAreRefused) {
  const std::string file = sweep("  a:\n");
  std::filesystem::create_directory(path("runs"));
  {
    const RunLock other(path("runs"));
    const Finished refused = run(arguments(file));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("is running in " + path("runs")));
    EXPECT_FALSE(is_there("runs/table.md"));
    EXPECT_FALSE(is_there("runs/a"));
    EXPECT_EQ(run({"sweep", file, "--run", path("runs"), "--show"}).status, 0);
  }
  const Finished done = run(arguments(file));
  EXPECT_EQ(done.status, 0) << done.err;
}

TEST_F(Sweep, AFolderThatCannotBeMadeIsSaid) {
  const std::string file = sweep("  a:\n");
  folder_.file("runs", "");
  const Finished refused = run(arguments(file));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("error: "));
  EXPECT_THAT(refused.err, HasSubstr(path("runs")));
  EXPECT_THAT(refused.err, Not(HasSubstr("filesystem error")));
}

TEST_F(Sweep, EachRowHasItsOwnFolderForTensorboard) {
  const std::string file = sweep("  a:\n  b: {heads: 1}\n");
  ASSERT_EQ(run(arguments(file, {"--tensorboard", path("events")})).status, 0);
  for (const char* row : {"a", "b"}) {
    const std::filesystem::directory_iterator begin(path("events") + "/" + row);
    EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
  }
}

TEST_F(Sweep, ARecipeBesideTheFileIsItsBase) {
  folder_.file("recipe.yaml",
               "preset: tiny\nlayers: 1\nd_model: 32\nheads: 2\nd_ff: 64\n"
               "vocabulary_size: 300\nbatch_tokens: 200\nstop_after: 50u\n");
  const std::string file = folder_.file(
      "sweep.yaml",
      "config: recipe.yaml\nbase: {d_ff: 96, stop_after: 2u}\nrows:\n  a: {heads: 4}\n");
  const Finished done = run(arguments(file));
  ASSERT_EQ(done.status, 0) << done.err;
  const std::string recipe = contents_of(path("runs/a/recipe.yaml"));
  for (const char* line : {"d_model: 32\n", "d_ff: 96\n", "heads: 4\n", "stop_after: \"2u\"\n"}) {
    EXPECT_THAT(recipe, HasSubstr(line));
  }
}

TEST_F(Sweep, TheRecipesOfTheRepositoryAreValid) {
  const std::string file = ATTEND_SOURCE_DIR "/recipes/table3.yaml";
  const Finished shown = run({"sweep", file, "--run", path("runs"), "--show"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, ContainsRegex("\nE-learned +positions learned +not begun\n"));
}

}  // namespace
}  // namespace attend
