// Jobs end to end through the command, on one small run that is trained once: contracts 22 to 24.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>

#include "tests/cli/job.h"

namespace attend {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Contract13Job : public Job {};
class Contract21Job : public Job {};
class Contract22Job : public Job {};
class Contract23Job : public Job {};
class Contract24Job : public Job {};

TEST_F(Contract22Job, DefaultsThatChangeQualityArePrinted) {
  EXPECT_THAT(trained_.err, HasSubstr("preset tiny"));
  EXPECT_THAT(trained_.err, HasSubstr("label_smoothing 0.1"));
  const Finished finished = run({"translate", "--model", path("run")}, "one two\n");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("beam_size 4, length_penalty 0.6, max_extra_length 50"));
}

TEST_F(Contract22Job, TheRecipeOfARunReproducesIt) {
  const Finished again =
      run({"train", "--config", path("run/recipe.yaml"), "--run", path("again")});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(contents_of(path("again/model.safetensors")),
            contents_of(path("run/model.safetensors")));
}

TEST_F(Contract22Job, ABadValueInAConfigFileIsNamedWithItsLine) {
  const std::string config = folder_->file("bad.yaml", "# a recipe\npreset: tiny\ndropout: 1.5\n");
  const Finished named = run({"train", "--config", config, "--run", path("bad")});
  EXPECT_EQ(named.status, 2);
  EXPECT_THAT(named.err, StartsWith("error: " + config + ":3: dropout is 1.5; it must be"));
  const Finished flag = run({"train", "--config", config, "--dropout", "2", "--run", path("bad")});
  EXPECT_THAT(flag.err, StartsWith("error: dropout is 2; "));
}

TEST_F(Contract23Job, ProgressIsLoggedInLinesWhereThereIsNoTerminal) {
  EXPECT_EQ(trained_.out, "");
  EXPECT_THAT(trained_.err, ContainsRegex("\nupdate 4, epoch [0-9.]+, loss "));
  EXPECT_THAT(trained_.err, ContainsRegex("\nupdate 12, "));
  EXPECT_THAT(trained_.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(trained_.err, Not(HasSubstr("\r")));
}

TEST_F(Contract23Job, ProgressIsDrawnOnATerminal) {
  const Finished drawn = run_on_terminal(train_arguments("drawn"));
  EXPECT_EQ(drawn.status, 0);
  EXPECT_THAT(drawn.err, ContainsRegex("\r\x1b\\[Kstep [0-9]+ ep [0-9.]+ loss "));
  EXPECT_THAT(drawn.err, Not(HasSubstr("\nupdate 4,")));
  // Lines of the log begin where nothing stands, and the job ends on an empty line.
  EXPECT_THAT(drawn.err, ContainsRegex("(\n|\x1b\\[K)finished: "));
  EXPECT_THAT(drawn.err, EndsWith("\r\x1b[K"));
  EXPECT_THAT(contents_of(path("drawn/train.log")), HasSubstr("update 4,"));
}

TEST_F(Contract23Job, TheLogOfARunHasWhatWasPrinted) {
  std::istringstream printed(trained_.err);
  const std::string log = contents_of(path("run/train.log"));
  int lines = 0;
  for (std::string line; std::getline(printed, line); ++lines) EXPECT_THAT(log, HasSubstr(line));
  EXPECT_GT(lines, 5);
  EXPECT_THAT(log, HasSubstr("attend train: vocabulary_size 300, preset tiny"));
  EXPECT_THAT(log, HasSubstr("finished: stop_after 12u reached"));
}

TEST_F(Contract23Job, QuietLeavesOnlyErrors) {
  const Finished training = run(with(train_arguments("quiet"), {"--quiet"}));
  EXPECT_EQ(training.status, 0);
  EXPECT_EQ(training.out + training.err, "");
  const Finished translating =
      run({"translate", "--model", path("run"), "--quiet"}, "one two\n\nthree\n");
  EXPECT_EQ(translating.err, "");
  EXPECT_EQ(std::count(translating.out.begin(), translating.out.end(), '\n'), 3);
  const Finished failing = run({"translate", "--model", path("none"), "--quiet"});
  EXPECT_THAT(failing.err, StartsWith("error: "));
}

TEST_F(Contract24Job, NumbersThatTheMachineCannotGiveAreErrorsOrStatedFallbacks) {
  const Finished none = run({"translate", "--model", path("run"), "--workers", "100000"}, "one\n");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("workers"));
  EXPECT_THAT(none.err, HasSubstr("100000"));
  const Finished many = run({"translate", "--model", path("run"), "--workers", "300"}, "one\n");
  EXPECT_EQ(many.status, 0);
  EXPECT_THAT(many.err, HasSubstr("warning: 300 workers on "));
  EXPECT_EQ(many.out, run({"translate", "--model", path("run")}, "one\n").out);
  const Finished training = run(with(train_arguments("w"), {"--workers", "100000"}));
  EXPECT_EQ(training.status, 2);
  const Finished half =
      run({"translate", "--model", path("run"), "--precision", "bfloat16"}, "one\n");
  EXPECT_EQ(half.status, 0) << half.err;
  EXPECT_THAT(half.err, ContainsRegex("bfloat16|float32"));
}

TEST_F(Contract24Job, MemoryThatThereIsNotIsAnError) {
#ifdef ATTEND_SANITIZE
  GTEST_SKIP() << "sanitizers need an address space without limit";
#endif
  const Finished finished = run_in_memory(
      {"bench", "train", "--preset", "big", "--workers", "1", "--steps", "1"}, size_t{1200} << 20);
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr("error: out of memory"));
  // Whoever meets the end of memory, it is an error with words and leaves no half of a file.
  const std::string output = folder_->file("memory_output", "old");
  for (const size_t megabytes : {size_t{105}, size_t{120}, size_t{150}}) {
    const Finished tokenizer = run_in_memory(
        {"tokenizer", "train", path("a"), "--output", output, "--vocabulary-size", "300"},
        megabytes << 20);
    if (tokenizer.status == 0 || tokenizer.status == 127) continue;  // enough, or not to start
    EXPECT_EQ(tokenizer.status, 1) << tokenizer.err;
    EXPECT_THAT(tokenizer.err, ContainsRegex("error: (out of memory|cannot start)"));
    EXPECT_EQ(contents_of(output), "old");
  }
}

TEST_F(Job, StopSignalsWriteACheckpointAndSaySo) {
  std::vector<std::string> arguments = train_arguments("stopped");
  *(std::find(arguments.begin(), arguments.end(), "--stop-after") + 1) = "1Mu";
  *(std::find(arguments.begin(), arguments.end(), "--checkpoint-every") + 1) = "100Ku";
  const Finished finished = run_until_file(arguments, path("stopped/recipe.yaml"), SIGTERM);
  EXPECT_EQ(finished.status, 128 + SIGTERM);
  EXPECT_THAT(finished.err, HasSubstr("a checkpoint is written first"));
  EXPECT_THAT(finished.err, HasSubstr("go on with: attend train --run " + path("stopped")));
  EXPECT_FALSE(std::filesystem::is_empty(path("stopped/checkpoints")));
  const Finished resumed = run({"train", "--run", path("stopped"), "--stop-after", "1u"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resuming"));
}

TEST_F(Job, ResumingWithOtherOptionsListsThem) {
  const Finished finished =
      run({"train", "--run", path("run"), "--dropout", "0.25", "--seed", "9", "--log-every", "2"});
  EXPECT_EQ(finished.status, 2);
  EXPECT_THAT(finished.err, HasSubstr("\n  dropout: 0.3 in the run, 0.25 asked for"));
  EXPECT_THAT(finished.err, HasSubstr("\n  seed: 1 in the run, 9 asked for"));
  EXPECT_THAT(finished.err, Not(HasSubstr("log_every:")));
}

TEST_F(Job, AFinishedRunSaysHowToGoOn) {
  const Finished finished = run({"train", "--run", path("run")});
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("is finished: stop_after 12u reached"));
  EXPECT_THAT(finished.err, HasSubstr("--stop-after"));
  // The same call as the first time is no contradiction.
  EXPECT_EQ(run(train_arguments("run")).status, 0);
}

TEST_F(Job, NBestIsWrittenAsDocumented) {
  const Finished finished =
      run({"translate", "--model", path("run"), "--n-best", "2", "--quiet"}, "one two\n\n");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, ContainsRegex("^0 \\|\\|\\| .* \\|\\|\\| -?[0-9.]+\n0 \\|\\|\\| "));
  EXPECT_THAT(finished.out, HasSubstr("\n1 |||  ||| "));
}

TEST_F(Job, PrefixesAndRequiredWordsAreReadBesideTheText) {
  folder_->file("prefix", "SEVEN\n\nEleven");
  folder_->file("words", "\nTWO\tTHREE FOUR\n\n");
  const std::vector<std::string> arguments = {
      "translate", path("run"), "--prefix", path("prefix"), "--require", path("words"), "--quiet"};
  const Finished finished = run(arguments, "one\ntwo\nthree\n");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_THAT(finished.out, ContainsRegex("^SEVEN[^\n]*\n[^\n]*\nEleven[^\n]*\n$"));
  const std::string second = finished.out.substr(finished.out.find('\n'));
  EXPECT_THAT(second, ContainsRegex("^\n[^\n]*TWO"));
  EXPECT_THAT(second, ContainsRegex("^\n[^\n]*THREE FOUR"));

  const Finished fewer = run(arguments, "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(fewer.status, 1);
  EXPECT_THAT(fewer.err, HasSubstr("prefix has 3 lines, fewer than standard input"));
  EXPECT_EQ(fewer.out, finished.out) << "what can be translated is";
  const Finished more = run(arguments, "one\n");
  EXPECT_EQ(more.status, 1);
  EXPECT_THAT(more.err, HasSubstr("prefix has more lines than standard input, which has 1"));
  const Finished input = run({"translate", path("run"), "--require", "-"}, "one\n");
  EXPECT_EQ(input.status, 2);
  EXPECT_THAT(input.err, HasSubstr("require: found -"));
}

TEST_F(Job, SamplesAreTheSameForTheSameSeed) {
  const auto sample = [&](const std::string& seed) {
    const Finished finished = run({"translate", path("run"), "--sampling", "--n-best", "3",
                                   "--seed", seed, "--max-length", "6", "--quiet"},
                                  "one two\nthree\n");
    EXPECT_EQ(finished.status, 0) << finished.err;
    return finished.out;
  };
  EXPECT_EQ(sample("5"), sample("5"));
  EXPECT_NE(sample("5"), sample("6"));
  const Finished refused = run({"translate", path("run"), "--temperature", "2"}, "one\n");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("temperature: it is an option of sampling"));
}

TEST_F(Job, SuppressedWordsAreTakenAtTheirWord) {
  const auto translate = [&](const std::vector<std::string>& more) {
    return run(with({"translate", path("run"), "--quiet"}, more), "one two three\n");
  };
  EXPECT_EQ(translate({"--suppress", "TWO", "THREE FOUR"}).status, 0);
  const Finished refused = translate({"--suppress", "\xE2\x96\x81nonsense"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("suppress: "));
}

TEST_F(Contract13Job, TranslationsDoNotWriteOverTextOrModel) {
  const std::string model = path("run/model.safetensors");
  const std::string text = path("a");
  std::filesystem::create_symlink(model, path("link"));
  const std::string checkpoint =
      std::filesystem::directory_iterator(path("run/checkpoints"))->path().string();
  for (const std::string& output :
       {text, model, path("link"), path("run/config.json"), path("run/recipe.yaml"), checkpoint}) {
    const std::string before = contents_of(output);
    const Finished finished = run({"translate", path("run"), "--input", text, "--output", output});
    EXPECT_EQ(finished.status, 2) << output;
    EXPECT_THAT(finished.err, HasSubstr("is the same file as "));
    EXPECT_EQ(contents_of(output), before);
  }
}

TEST_F(Contract13Job, AFailedTranslationLeavesTheOldOne) {
  const std::string old = folder_->file("old", "the old translation\n");
  const auto files = std::distance(std::filesystem::directory_iterator(path("")), {});
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "one two\n";
  const Finished finished = run_with_file_limit(
      {"translate", path("run"), "--output", old, "--max-extra-length", "8"}, text, 20000);
  EXPECT_EQ(finished.status, 1) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("error: cannot write " + old + ": File too large"));
  EXPECT_EQ(contents_of(old), "the old translation\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("")), {}), files);
}

TEST_F(Contract13Job, AnInterruptedTranslationLeavesNothing) {
  std::filesystem::create_directory(path("interrupted"));
  const std::string fifo = path("endless");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int writer = open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // so that the text never ends
  const Finished finished = run_until_entry(
      {"translate", path("run"), "--input", fifo, "--output", path("interrupted/out")},
      path("interrupted"), SIGINT);
  close(writer);
  EXPECT_EQ(finished.status, 128 + SIGINT) << finished.err;
  EXPECT_TRUE(std::filesystem::is_empty(path("interrupted")));
}

TEST_F(Job, InspectAndAverage) {
  const Finished inspected = run({"inspect", path("run")});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("d_model"));
  const Finished averaged =
      run({"average", "--run", path("run"), "--last", "2", "--output", path("average")});
  EXPECT_EQ(averaged.status, 0) << averaged.err;
  const Finished translated = run({"translate", path("average"), "--quiet"}, "one\n");
  EXPECT_EQ(translated.status, 0) << translated.err;
  EXPECT_EQ(run({"average", "--run", path("run"), "--last", "99", "--output", path("x")}).status,
            1);
  // The average of a model with itself is the model.
  ASSERT_EQ(run({"average", path("run"), path("run"), "--output", path("same")}).status, 0);
  const std::vector<std::string> translate_rest = {"--quiet", "--precision", "float32"};
  EXPECT_EQ(run(with({"translate", path("same")}, translate_rest), "one two\n").out,
            run(with({"translate", path("run")}, translate_rest), "one two\n").out);
}

TEST_F(Job, AShortlistIsLearnedAndUsed) {
  const std::vector<std::string> learn = {"shortlist", path("run"), "--source", path("a"),
                                          "--target"};
  const std::string list = path("list.safetensors");
  const Finished learned = run(with(learn, {path("b"), "--output", list, "--frequent", "10"}));
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.err, HasSubstr("300 pairs"));
  EXPECT_THAT(learned.err, HasSubstr("for 300 source tokens, and 10 for every sentence"));
  const Finished again = run(with(learn, {path("b"), "--frequent", "10"}));
  EXPECT_EQ(contents_of(path("run/shortlist.safetensors")), contents_of(list)) << again.err;
  const Finished used = run({"translate", path("run"), "--shortlist", list}, "one two\n\nthree\n");
  ASSERT_EQ(used.status, 0) << used.err;
  EXPECT_THAT(used.err, HasSubstr("shortlist " + list));
  EXPECT_EQ(std::count(used.out.begin(), used.out.end(), '\n'), 3);

  const Finished unequal = run(with(learn, {folder_->file("short", "ONE\n")}));
  EXPECT_EQ(unequal.status, 1);
  EXPECT_THAT(unequal.err, HasSubstr("300"));
  EXPECT_EQ(run(with(learn, {path("b"), "--output", path("a")})).status, 2);
  EXPECT_EQ(run(with(learn, {path("b"), "--tsv", path("a")})).status, 2);
  EXPECT_EQ(run(with(learn, {path("b"), "--candidates", "0"})).status, 2);
  EXPECT_EQ(run({"shortlist", path("run"), "--source", path("a")}).status, 2);
}

TEST_F(Contract13Job, AnAverageDoesNotWriteOverAModel) {
  const std::string model = path("run/model.safetensors");
  const std::string before = contents_of(model);
  const Finished finished = run({"average", path("run"), "--output", path("run")});
  EXPECT_EQ(finished.status, 2);
  EXPECT_THAT(finished.err, HasSubstr(path("run") + " holds a model or a run already; choose "
                                                    "another --output"));
  EXPECT_EQ(contents_of(model), before);
  std::filesystem::create_directory(path("occupied"));
  folder_->file("occupied/recipe.yaml", "");
  EXPECT_EQ(run({"average", path("run"), "--output", path("occupied")}).status, 2);
}

TEST_F(Contract13Job, AFailedAverageLeavesNoFolder) {
  const Finished finished = run_with_file_limit(
      {"average", path("run"), "--output", path("too_large")}, "", size_t{10} << 10);
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(path("too_large")));
}

TEST_F(Contract21Job, CheckpointsOfOtherRunsAreNotAveraged) {
  const Finished gelu = run(with(train_arguments("gelu"), {"--activation", "gelu"}));
  ASSERT_EQ(gelu.status, 0) << gelu.err;
  const std::string mine = path("run/checkpoints/step-00000012.safetensors");
  const std::string other = path("gelu/checkpoints/step-00000012.safetensors");
  const Finished finished = run({"average", mine, other, "--output", path("mixed")});
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr("cannot average " + mine + " and " + other +
                                      ": activation is relu in the first and gelu in the second"));
  EXPECT_FALSE(std::filesystem::exists(path("mixed")));
}

TEST_F(Job, WrongArgumentsOfAverageAreNamed) {
  const auto error_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "average");
    const Finished finished = run(with(arguments, {"--output", path("x")}));
    EXPECT_EQ(finished.status, 1);
    return finished.err;
  };
  EXPECT_THAT(error_of({path("nope")}), HasSubstr("cannot open " + path("nope")));
  EXPECT_THAT(error_of({path("a")}), HasSubstr(path("a") + " is no safetensors file"));
  EXPECT_THAT(error_of({"--run", path("nope")}), HasSubstr("there is no folder " + path("nope")));
  EXPECT_THAT(error_of({std::string(300, 'x')}), HasSubstr("File name too long"));
  std::filesystem::copy(path("run/model.safetensors"), path("alone.safetensors"));
  EXPECT_THAT(
      error_of({path("alone.safetensors")}),
      HasSubstr(path("alone.safetensors") + ": the configuration and tokenizers beside it"));
  const Finished one = run({"average", path("run"), "--output", path("one")});
  EXPECT_THAT(one.err, HasSubstr("the average of 1 model\n"));
}

TEST_F(Job, DryRunWritesNothing) {
  const Finished finished = run(with(train_arguments("dry"), {"--dry-run"}));
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_NE(finished.out, "");
  EXPECT_FALSE(std::filesystem::exists(path("dry")));
}

TEST_F(Job, TokenizersCarryEveryCharacter) {
  const std::string model = path("run/tokenizer.model");
  const std::string text =
      "one  two \t three\n\n\xe2\x80\xa6 \xc2\xbd \xef\xac\x81 \xc2\xb2 "
      "\xf0\x9f\x98\x80 \xe2\x96\x81 <s>\n  \n";
  for (const std::vector<std::string>& ids :
       {std::vector<std::string>{}, std::vector<std::string>{"--ids"}}) {
    const Finished encoded = run(with({"tokenizer", "encode", model}, ids), text);
    ASSERT_EQ(encoded.status, 0) << encoded.err;
    const Finished decoded = run(with({"tokenizer", "decode", model}, ids), encoded.out);
    EXPECT_EQ(decoded.status, 0) << decoded.err;
    EXPECT_EQ(decoded.out, text);
  }
  const Finished bad = run({"tokenizer", "encode", model}, "one \xff two\n");
  EXPECT_EQ(bad.status, 0);
  EXPECT_THAT(bad.err, HasSubstr("warning: standard input:1: "));
  for (const char* line : {"-1\n", "1 99999\n", "one\n"}) {
    const Finished wrong = run({"tokenizer", "decode", model, "--ids"}, line);
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.err, StartsWith("error: standard input:1: "));
  }
  EXPECT_EQ(run({"tokenizer", "decode", model}, "nosuchpiece\n").status, 1);
}

TEST_F(Job, ATokenizerIsTrained) {
  const Finished finished = run({"tokenizer", "train", path("a"), path("b"), "--output",
                                 path("t.model"), "--vocabulary-size", "300", "--quiet"});
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(finished.out + finished.err, "");
  EXPECT_EQ(run({"tokenizer", "encode", path("t.model")}, "x\n").status, 0);
}

TEST_F(Job, ABenchmarkIsPrintedForPeopleAndMachines) {
  const std::vector<std::string> bench = {
      "bench",   "train", "--layers",          "1",   "--d-model", "32", "--d-ff",    "64",
      "--pairs", "4",     "--vocabulary-size", "500", "--steps",   "1",  "--workers", "1"};
  EXPECT_THAT(run(bench).out, HasSubstr("utilisation"));
  EXPECT_THAT(run(with(bench, {"--json"})).out, HasSubstr("\"utilisation\":"));
}

}  // namespace
}  // namespace attend
