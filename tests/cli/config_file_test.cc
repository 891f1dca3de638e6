#include "attend/cli/config_file.h"

#include <gtest/gtest.h>

#include "attend/cli/train_options.h"

namespace attend {
namespace {

struct Fixture {
  TrainOptions train;
  OptionSet options;
  Fixture() { define_train_options(options, train); }
  void apply(const std::string& yaml) { options.apply({parse_config(yaml, "r.yaml", options)}); }
};

std::string complaint_about(const std::string& yaml) {
  Fixture fixture;
  try {
    fixture.apply(yaml);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigFile, SetsFieldsWithDashesOrUnderscoresAndLists) {
  Fixture fixture;
  fixture.apply(
      "# a recipe\npreset: tiny\nbatch-tokens: 4K\ntrain_source: [a.en, 'b, c.en']\n"
      "train_target: x.de\njoint_vocabulary: false\nrun: \"\"\nd_model: 64\n");
  EXPECT_EQ(fixture.train.preset, "tiny");
  EXPECT_EQ(fixture.train.batch_tokens, 4000);
  EXPECT_EQ(fixture.train.train_source, (std::vector<std::string>{"a.en", "b, c.en"}));
  EXPECT_EQ(fixture.train.train_target, std::vector<std::string>{"x.de"});
  EXPECT_FALSE(fixture.train.joint_vocabulary);
  EXPECT_EQ(fixture.train.model.d_model, 64);
  EXPECT_EQ(fixture.train.model.d_ff, preset("tiny").d_ff);
}

TEST(ConfigFile, PresetsComeBeforeSingleFieldsWhereverTheyStand) {
  Fixture fixture;
  fixture.apply("d_model: 64\nencoder_layers: 1\nlayers: 2\npreset: tiny\n");
  EXPECT_EQ(fixture.train.model.d_model, 64);
  EXPECT_EQ(fixture.train.model.encoder_layers, 1);
  EXPECT_EQ(fixture.train.model.decoder_layers, 2);
  EXPECT_EQ(fixture.train.model.heads, preset("tiny").heads);
}

TEST(ConfigFile, ErrorsNameFileAndLine) {
  EXPECT_EQ(complaint_about("preset: tiny\nbatch_tokes: 3\n"),
            "r.yaml:2: there is no option \"batch_tokes\"; did you mean \"batch_tokens\"?");
  EXPECT_EQ(complaint_about("\n\nseed: abc\n"),
            "r.yaml:3: seed: found \"abc\", expected a whole number from 0 to "
            "18446744073709551615");
  EXPECT_EQ(complaint_about("seed: 1\nlanes: 8\nseed: 2\n"), "r.yaml:3: seed is given twice");
  EXPECT_EQ(complaint_about("batch_tokens: 1\nbatch-tokens: 2\n"),
            "r.yaml:2: batch_tokens is given twice");
  EXPECT_EQ(complaint_about("seed:\n"),
            "r.yaml:1: seed: there is no value; write \"\" for an empty one");
  EXPECT_EQ(complaint_about("seed: {a: 1}\n"),
            "r.yaml:1: seed: found a mapping, expected a value or a list of values");
  EXPECT_EQ(complaint_about("train_tsv: [[a]]\n"),
            "r.yaml:1: train_tsv: expected a value or a list of values");
  EXPECT_EQ(complaint_about("seed: [1, 2]\n"),
            "r.yaml:1: seed: found 2 values (1, 2), expected one");
  EXPECT_NE(complaint_about("preset: huge\n").find("r.yaml:1: preset: "), std::string::npos);
  EXPECT_NE(complaint_about("just text\n").find("option: value"), std::string::npos);
  EXPECT_NE(complaint_about("- a\n- b\n").find("option: value"), std::string::npos);
  EXPECT_NE(complaint_about("a: [1\nb: 2\n").find("not YAML"), std::string::npos);
  EXPECT_NE(complaint_about("seed: 1\n---\nseed: 2\n").find("one YAML document"),
            std::string::npos);
  EXPECT_EQ(complaint_about(""), "");
}

TEST(ConfigFile, MutatedAndTruncatedTextIsAnErrorAtMost) {
  const std::string good =
      "preset: tiny\ntrain_source: [a, \"b\"]\nstop_after: 5Ku\nseed: 3\nrun: 'x'\n";
  for (size_t size = 0; size < good.size(); ++size) complaint_about(good.substr(0, size));
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', ':', '[', '"', '&', '*', '\t', '\xff', '{', '\n'}) {
      std::string bad = good;
      bad[at] = byte;
      refused += !complaint_about(bad).empty();
    }
  }
  EXPECT_GT(refused, good.size());
}

TEST(ConfigFile, ADumpReproducesEveryOption) {
  Fixture first;
  first.apply(
      "preset: tiny\nd_model: 96\nheads: 3\nseed: 18446744073709551615\nlearning_rate: 0.00071\n"
      "adam_epsilon: 1e-9\ndropout: 0.15\nstop_after: 2.5h\ncheckpoint_every: 7e\n"
      "positions: rotary\ntrain_tsv: ['a: b', '#c', '', 'null', '~', \"d\\te\", \"\\u00fc\"]\n"
      "corpus_weights: [0.5, 2, 1, 1, 1, 1, 1]\nrun: \"true\"\nskip_bad_lines: true\n"
      "joint_vocabulary: false\ntokenizer: '{x}'\n");
  const std::string dump = to_yaml(first.options);
  Fixture second;
  second.apply(dump);
  EXPECT_EQ(to_yaml(second.options), dump);
  for (const Option& option : first.options.options()) {
    EXPECT_EQ(option.get(), second.options.find(option.name)->get()) << option.name;
  }
  EXPECT_EQ(second.train.train_tsv[5], "d\te");
  EXPECT_EQ(second.train.model, first.train.model);
}

TEST(ConfigFile, MissingFilesAreWrongCalls) {
  Fixture fixture;
  try {
    read_config("/no/such/file.yaml", fixture.options);
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/file.yaml"), std::string::npos);
  }
  EXPECT_THROW(read_config("/", fixture.options), UsageError);
}

}  // namespace
}  // namespace attend
