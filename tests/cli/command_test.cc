// The command as users meet it: exit status, stdout and stderr, contracts 22 to 24.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "attend/base/version.h"
#include "attend/cli/command.h"
#include "tests/cli/process.h"

namespace attend {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Command, WithoutArgumentsHelps) {
  const Finished finished = run({});
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(finished.out, HasSubstr("Usage: attend COMMAND"));
  EXPECT_EQ(finished.err, "");
  for (const auto& command : make_commands()) {
    EXPECT_THAT(finished.out, HasSubstr(std::string(command->name())));
    std::vector<std::string> words;
    std::istringstream name{std::string(command->name())};
    for (std::string word; name >> word;) words.push_back(word);
    words.push_back("--help");
    const Finished help = run(words);
    EXPECT_EQ(help.status, 0) << command->name();
    EXPECT_THAT(help.out, HasSubstr(std::string(command->summary().substr(0, 20))));
  }
}

TEST(Command, PrintsItsVersion) {
  EXPECT_EQ(run({"--version"}).out, fmt::format("attend {}\n", kVersion));
}

TEST(Command, UnknownCommandsNameTheNearest) {
  const Finished finished = run({"translat"});
  EXPECT_EQ(finished.status, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, StartsWith("error: there is no command \"translat\"; did you mean "
                                       "\"translate\"?"));
  EXPECT_THAT(run({"tokenizer"}).err, HasSubstr("tokenizer encode"));
  EXPECT_THAT(run({"tokenizer", "encod"}).err, HasSubstr("did you mean \"tokenizer encode\""));
  EXPECT_EQ(run({"--quiet", "train"}).status, 2);
}

TEST(Contract22, UnknownFlagsNameTheNearest) {
  const Finished finished = run({"train", "--batch-tokes", "3"});
  EXPECT_EQ(finished.status, 2);
  EXPECT_EQ(finished.err,
            "error: attend train has no option --batch-tokes; did you mean \"--batch-tokens\"?\n");
  EXPECT_THAT(run({"translate", "--beam_sizes=3"}).err, HasSubstr("did you mean \"--beam-size\"?"));
}

TEST(Contract22, UnknownKeysNameTheNearestAndTheLine) {
  const TemporaryFolder folder;
  const std::string config = folder.file("r.yaml", "preset: tiny\n\ndrop_out: 0.1\n");
  const Finished finished = run({"train", "--config", config});
  EXPECT_EQ(finished.status, 2);
  EXPECT_EQ(finished.err, "error: " + config +
                              ":3: there is no option \"drop_out\"; did you mean \"dropout\"?\n");
}

TEST(Contract22, ABadConfigFileFailsForEveryCommand) {
  const TemporaryFolder folder;
  const std::string broken = folder.file("broken.yaml", "a: [\n");
  for (const auto& command : make_commands()) {
    std::vector<std::string> arguments;
    std::istringstream name{std::string(command->name())};
    for (std::string word; name >> word;) arguments.push_back(word);
    for (const std::string& bad : {folder.path("missing.yaml"), broken, folder.path("")}) {
      std::vector<std::string> all = arguments;
      all.insert(all.end(), {"--config", bad});
      const Finished finished = run(all);
      EXPECT_EQ(finished.status, 2) << command->name();
      EXPECT_THAT(finished.err, HasSubstr(bad)) << command->name();
    }
  }
}

TEST(Contract22, FlagsOverrideTheFileAndTheFileOverridesThePreset) {
  const TemporaryFolder folder;
  const std::string config =
      folder.file("r.yaml", "d_model: 64\ndropout: 0.2\npreset: tiny\ntrain-tsv: [a, b]\n");
  const Finished finished =
      run({"train", "--config", config, "--dropout", "0.25", "--no-joint-vocabulary",
           "--tied-embeddings", "decoder", "--embedding-dropout", "-1", "--dump-config"});
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.status, 0);
  for (const char* line : {"\nd_model: 64\n", "\ndropout: 0.25\n", "\nd_ff: 256\n",
                           "\npreset: \"tiny\"\n", "\ntrain_tsv: [\"a\", \"b\"]\n",
                           "\njoint_vocabulary: false\n", "\nembedding_dropout: -1\n"}) {
    EXPECT_THAT(finished.out, HasSubstr(line));
  }
}

TEST(Contract22, ADumpReproducesItself) {
  const TemporaryFolder folder;
  const Finished first =
      run({"train", "--preset", "tiny", "--layers", "3", "--stop-after", "2h", "--seed", "7",
           "--train-tsv", "a b.tsv", "--run", "x", "--batch-tokens", "4K", "--dump-config"});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string config = folder.file("dump.yaml", first.out);
  const Finished second = run({"train", "--config", config, "--dump-config"});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(first.out, HasSubstr("\nencoder_layers: 3\ndecoder_layers: 3\n"));
}

TEST(Command, WrongCallsSayWhatIsWrong) {
  struct Case {
    std::vector<std::string> arguments;
    std::string error;
  };
  const std::vector<Case> cases = {
      {{"train", "--seed", "abc"},
       "--seed: found \"abc\", expected a whole number from 0 to 18446744073709551615"},
      {{"train", "--seed"}, "--seed needs a value"},
      {{"train", "--run", "--dry-run"}, "--run needs a value; found the flag --dry-run"},
      {{"train", "--run="}, "--run has no value after \"=\"; write --run \"\""},
      {{"train", "--seed", "1", "--seed", "2"}, "--seed is given twice"},
      {{"train", "--config", "a", "--config", "b"}, "--config is given twice: \"a\" and \"b\""},
      {{"train", "--kangaroos"},
       "attend train has no option --kangaroos; attend train --help lists"},
      {{"kangaroos"}, "there is no command \"kangaroos\"; attend --help lists all"},
      {{"train", "there"}, "found the argument \"there\""},
      {{"train", "--dropout", "1.5"}, "dropout is 1.5"},
      {{"train", "--preset", "huge"}, "--preset: "},
      {{"train", "--train-source", "a", "--dump-config"}, "train_target"},
      {{"train", "--run", "/no/such/run"}, "there is no training data"},
      {{"train"}, "--run DIR is missing"},
      {{"translate"}, "--model DIR is missing"},
      {{"translate", "--model", "x", "--beam-size", "0"}, "beam_size: found 0"},
      {{"evaluate"}, "--reference FILE is missing"},
      {{"evaluate", "--reference", "-"}, "both standard input"},
      {{"evaluate", "--smooth-value", "1"}, "smooth_value"},
      {{"evaluate", "--metrics", "bleu,blue"}, "--metrics: found \"blue\", expected one of bleu"},
      {{"tokenizer", "train"}, "--input FILE is missing"},
      {{"tokenizer", "encode"}, "--tokenizer FILE is missing"},
      {{"average", "--output", "x"}, "either --run DIR or the models"},
      {{"inspect"}, "MODEL is missing"},
      {{"bench", "train", "--steps", "0"}, "steps: found 0"},
      {{"bench", "train", "--vocabulary-size", "3"}, "vocabulary_size: found 3, expected from 4"},
      {{"bench", "train", "--vocabulary-size", "2"}, "vocabulary_size: found 2, expected from 4"},
      {{"bench", "train", "--pairs", "1000000000000"},
       "pairs: found 1000000000000, expected from 1 to 312500"},
      {{"bench", "train", "--source-length", "1025"}, "source_length: found 1025"},
      {{"bench", "train", "--lanes", "129"}, "lanes: found 129, expected from 1 to 128"},
      {{"translate", "x", "--beam-size", "1000000"}, "beam_size: found 1000000"},
      {{"evaluate", "--resamples", "1000000000000"}, "resamples: found 1000000000000"},
      {{"evaluate", "--resamples", "0"}, "resamples: found 0, expected from 1 to 1000000"},
      {{"bench", "train", "--warmup=-1"}, "warmup: found -1"},
      {{"bench", "translate"}, "--model DIR is missing"},
      {{"bench", "translate", "x", "--copies", "0"}, "copies: found 0, expected from 1"},
  };
  for (const Case& each : cases) {
    const Finished finished = run(each.arguments);
    EXPECT_EQ(finished.status, 2) << each.error;
    EXPECT_EQ(finished.out, "") << each.error;
    EXPECT_THAT(finished.err, StartsWith("error: "));
    EXPECT_THAT(finished.err, HasSubstr(each.error));
  }
}

TEST(Command, HelpSaysWhatTurningOffMeans) {
  EXPECT_THAT(run({"train", "--help"}).out,
              testing::ContainsRegex("--no-joint-vocabulary +A tokenizer for each side instead"));
}

TEST(Command, FoldersAreNoTokenizers) {
  const TemporaryFolder folder;
  const Finished finished = run({"tokenizer", "encode", folder.path("")});
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, HasSubstr("is a folder; expected a SentencePiece model"));
}

TEST(Command, FailedJobsExitWithOne) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"translate", "--model", "/no/such/model"},
           {"evaluate", "--reference", "/no/such/reference"},
           {"inspect", "/no/such/model"},
           {"tokenizer", "encode", "/no/such/tokenizer"},
           {"average", "--output", "/no/such/x", "/no/such/model"}}) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 1) << arguments[0];
    EXPECT_THAT(finished.err, HasSubstr("/no/such"));
    EXPECT_THAT(finished.err, HasSubstr("error: "));
  }
}

TEST(Contract23, ResultsGoToStdoutAndNothingElseDoes) {
  const TemporaryFolder folder;
  const std::string reference = folder.file("ref", "a small test of it\nand more of it\n");
  const Finished good = run({"evaluate", "--reference", reference}, "a small test of it\nand\n");
  EXPECT_EQ(good.status, 0);
  EXPECT_THAT(good.out, StartsWith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|"));
  EXPECT_THAT(good.out, HasSubstr("\nchrF2|"));
  EXPECT_EQ(good.err, "");
  const Finished bad = run({"evaluate", "--reference", reference}, "one line\n");
  EXPECT_EQ(bad.status, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_EQ(bad.err, "error: standard input has 1 line, but the reference " + reference +
                         " has 2 lines; expected as many\n");
}

TEST(Documents, OptionsAreInDocsOptions) {
  EXPECT_EQ(contents_of(ATTEND_SOURCE_DIR "/docs/options.md"), options_document(make_commands()))
      << "write it anew: attend docs-options > docs/options.md";
}

}  // namespace
}  // namespace attend
