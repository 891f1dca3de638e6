#include "attend/cli/option_set.h"

#include <gtest/gtest.h>

namespace attend {
namespace {

struct Values {
  int64_t batch_tokens = 4096;
  double length_penalty = 0.6;
  float dropout = 0.1f;
  std::string run;
  std::vector<std::string> files;
  std::vector<BleuTokenizer> tokenizers;
  bool lowercase = false;
  bool joint = true;
  Positions positions = Positions::kSinusoidal;
  TrainLimit stop_after;
  uint64_t seed = 1;
};

void define(OptionSet& options, Values& values) {
  options.group("First");
  options.add("batch_tokens", values.batch_tokens, "Tokens of a batch").quality();
  options.add("length_penalty", values.length_penalty, "A number").quality();
  options.add("dropout", values.dropout, "Another");
  options.add("run", values.run, "Text").changeable();
  options.group("Second");
  options.add("files", values.files, "Several");
  options.add("tokenizers", values.tokenizers, "Several names");
  options.add("lowercase", values.lowercase, "A flag");
  options.add("joint", values.joint, "A flag that is on");
  options.add("positions", values.positions, "One name");
  options.add("stop_after", values.stop_after, "An amount").changeable();
  options.add("seed", values.seed, "All 64 bits");
}

/// The message of the UsageError that `call` throws, or "" where it throws none.
template <typename Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string complaint_about(const std::string& name, const std::vector<std::string>& texts) {
  Values values;
  OptionSet options;
  define(options, values);
  return complaint([&] { options.apply({{{name, texts, "file.yaml:3: " + name}}}); });
}

TEST(OptionSet, SetsEveryType) {
  Values values;
  OptionSet options;
  define(options, values);
  options.apply({{{"batch_tokens", {"4K"}, ""},
                  {"length-penalty", {"1e-1"}, ""},
                  {"dropout", {"0.25"}, ""},
                  {"run", {"a b"}, ""},
                  {"files", {"x,y", "z"}, ""},
                  {"tokenizers", {"13a,char", "none"}, ""},
                  {"lowercase", {"true"}, ""},
                  {"joint", {"false"}, ""},
                  {"positions", {"rotary"}, ""},
                  {"stop_after", {"5Ku"}, ""},
                  {"seed", {"18446744073709551615"}, ""}}});
  EXPECT_EQ(values.batch_tokens, 4000);
  EXPECT_EQ(values.length_penalty, 0.1);
  EXPECT_EQ(values.dropout, 0.25f);
  EXPECT_EQ(values.run, "a b");
  EXPECT_EQ(values.files, (std::vector<std::string>{"x,y", "z"}));
  EXPECT_EQ(values.tokenizers,
            (std::vector<BleuTokenizer>{BleuTokenizer::k13a, BleuTokenizer::kChar,
                                        BleuTokenizer::kNone}));
  EXPECT_TRUE(values.lowercase);
  EXPECT_FALSE(values.joint);
  EXPECT_EQ(values.positions, Positions::kRotary);
  EXPECT_EQ(values.stop_after.updates, 5000);
  EXPECT_EQ(values.seed, UINT64_MAX);
}

TEST(OptionSet, LaterSourcesOverrideAndListsAreReplaced) {
  Values values;
  OptionSet options;
  define(options, values);
  options.apply({{{"dropout", {"0.2"}, ""}, {"files", {"a", "b"}, ""}},
                 {{"dropout", {"0.3"}, ""}, {"files", {"c"}, ""}}});
  EXPECT_EQ(values.dropout, 0.3f);
  EXPECT_EQ(values.files, std::vector<std::string>{"c"});
}

TEST(OptionSet, FirstOptionsGoBeforeAllOthers) {
  Values values;
  OptionSet options;
  options.add("dropout", values.dropout, "");
  options.add("run", values.run, "").first().then([&] { values.dropout = 0.9f; });
  options.apply({{{"dropout", {"0.2"}, ""}, {"run", {"x"}, ""}}, {{"run", {"y"}, ""}}});
  EXPECT_EQ(values.dropout, 0.2f);
  EXPECT_EQ(values.run, "y");
}

TEST(OptionSet, BadValuesNameOriginWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(complaint_about("batch_tokens", {"many"}),
            "file.yaml:3: batch_tokens: found \"many\", expected a whole number, such as 4096, 4K "
            "or 2M");
  EXPECT_EQ(complaint_about("length_penalty", {"0.6x"}),
            "file.yaml:3: length_penalty: found \"0.6x\", expected a number");
  EXPECT_EQ(complaint_about("length_penalty", {"nan"}),
            "file.yaml:3: length_penalty: found \"nan\", expected a number");
  EXPECT_EQ(complaint_about("dropout", {"1e99"}),
            "file.yaml:3: dropout: found \"1e99\", expected a number");
  EXPECT_EQ(complaint_about("lowercase", {"yes"}),
            "file.yaml:3: lowercase: found \"yes\", expected true or false");
  EXPECT_EQ(complaint_about("positions", {"learnt"}),
            "file.yaml:3: positions: found \"learnt\", expected one of sinusoidal, learned, "
            "rotary");
  EXPECT_EQ(complaint_about("seed", {"-1"}),
            "file.yaml:3: seed: found \"-1\", expected a whole number from 0 to "
            "18446744073709551615");
  EXPECT_EQ(complaint_about("dropout", {"0.1", "0.2"}),
            "file.yaml:3: dropout: found 2 values (0.1, 0.2), expected one");
  EXPECT_NE(complaint_about("stop_after", {"10"}), "");
}

TEST(OptionSet, UnknownNamesNameTheNearest) {
  EXPECT_EQ(complaint_about("batch_tokes", {"1"}),
            "file.yaml:3: batch_tokes: there is no such option; did you mean \"batch_tokens\"?");
  Values values;
  OptionSet options;
  define(options, values);
  EXPECT_EQ(options.suggestion("drpoout"), "; did you mean \"dropout\"?");
  EXPECT_EQ(options.suggestion("length-penality"), "; did you mean \"length_penalty\"?");
  EXPECT_EQ(options.suggestion("kangaroos"), "; --help lists all");
  EXPECT_EQ(options.find("no_such"), nullptr);
  EXPECT_EQ(options.find("batch-tokens"), options.find("batch_tokens"));
}

TEST(OptionSet, ContradictionsAreWhatMayNotChange) {
  Values recorded_values, values;
  OptionSet recorded, options;
  define(recorded, recorded_values);
  define(options, values);
  options.apply({{{"run", {"elsewhere"}, ""}, {"stop_after", {"1e"}, ""}}});
  EXPECT_TRUE(options.contradictions(recorded).empty());
  options.apply({{{"dropout", {"0.3"}, ""}, {"files", {"a", "b"}, ""}}});
  EXPECT_EQ(options.contradictions(recorded),
            (std::vector<std::string>{"dropout: 0.1 in the run, 0.3 asked for",
                                      "files: none in the run, a, b asked for"}));
}

TEST(OptionSet, SummarisesWhatChangesQuality) {
  Values values;
  OptionSet options;
  define(options, values);
  EXPECT_EQ(options.quality_summary(), "batch_tokens 4096, length_penalty 0.6");
}

TEST(DidYouMean, CountsEditsAndSwaps) {
  EXPECT_EQ(did_you_mean("ab", {"abcdef", "ba", "xyz"}, ""), "; did you mean \"ba\"?");
  EXPECT_EQ(did_you_mean("translat", {"train", "translate"}, ""), "; did you mean \"translate\"?");
}

TEST(DidYouMean, OffersNothingThatIsFar) {
  EXPECT_EQ(did_you_mean("", {"train"}, "see it"), "; see it");
  EXPECT_EQ(did_you_mean("abcdef", {"abcxyz"}, "see it"), "; see it");
  EXPECT_EQ(did_you_mean("abcdefghi", {"abcdefxyz"}, ""), "; did you mean \"abcdefxyz\"?");
}

}  // namespace
}  // namespace attend
