#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/cli/job.h"
#include "tests/support/event_reader.h"

namespace attend {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kHostile = "one </script><script>alert(1)</script> <!-- & \" two";

/// What a page shows.
Json data_of(const std::string& path) {
  const std::string page = contents_of(path);
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

class Report : public Job {
 protected:
  static void SetUpTestSuite() {
    Job::SetUpTestSuite();
    folder_->file("valid.a", kHostile + "\nthree four five\nsix seven\none\n\ntwo three\n");
    folder_->file("valid.b", "ONE TWO\nTHREE FOUR FIVE\nSIX SEVEN\nONE\n\nTWO THREE\n");
    validated_ = run(with(train_arguments("validated"),
                          {"--valid-source", path("valid.a"), "--valid-target", path("valid.b"),
                           "--validate-every", "6u", "--learning-rate", "0.02"}));
  }
  void SetUp() override {
    Job::SetUp();
    ASSERT_EQ(validated_.status, 0) << validated_.err;
  }
  static std::string copy_of(const std::string& run_name, const std::string& name) {
    std::filesystem::copy(path(run_name), path(name), std::filesystem::copy_options::recursive);
    return path(name);
  }
  /// Of runs, with more arguments.
  static Json report(const std::vector<std::string>& arguments) {
    const Finished made = run(with({"report", "--output", path("page.html")}, arguments));
    EXPECT_EQ(made.status, 0) << made.err;
    return data_of(path("page.html"));
  }

  inline static Finished validated_;
};

TEST_F(Report, ShowsWhatARunDid) {
  const Json page = report({path("validated"), "--samples", "4", "--attention", "2"});
  const Json& run = page["runs"][0];
  EXPECT_EQ(run["name"], "validated");
  EXPECT_EQ(run["state"], "Finished: stop_after 12u reached");
  EXPECT_EQ(run["training"]["update"], Json::array({4, 8, 12}));
  EXPECT_EQ(run["validation"]["update"], Json::array({6, 12}));
  EXPECT_EQ(run["done"]["updates"], 12);
  EXPECT_EQ(run["pairs"], 300);
  EXPECT_EQ(run["data"]["pairs_kept"], 300);
  EXPECT_EQ(run["model"]["d_model"], 32);
  EXPECT_GT(run["weights"], 1000);
  EXPECT_EQ(run["tokenizers"][0]["pieces"], run["model"]["source_vocabulary_size"]);
  EXPECT_TRUE(run["notes"].empty()) << run["notes"];
  ASSERT_EQ(run["scores"].size(), 3U);
  EXPECT_EQ(run["scores"][0]["metric"], "BLEU");
  EXPECT_THAT(run["scores"][0]["signature"].get<std::string>(), HasSubstr("nrefs:1|case:mixed"));
  EXPECT_NEAR(run["scores"][0]["value"].get<double>(), run["best"]["bleu"].get<double>(), 1e-3)
      << "the model that is kept, translated as it was validated";
  const auto learning_rate =
      std::find_if(run["recipe"].begin(), run["recipe"].end(),
                   [](const Json& e) { return e["name"] == "learning_rate"; });
  EXPECT_EQ((*learning_rate)["value"], "0.02");
  EXPECT_EQ((*learning_rate)["usual"], "0.001");
}

TEST_F(Report, SamplesAndTheirAttentionAreThoseOfTheText) {
  const Json page = report({path("validated"), "--samples", "5", "--attention", "2"});
  ASSERT_EQ(page["samples"].size(), 5U);
  std::size_t with_attention = 0, hostile = 0;
  for (const Json& sample : page["samples"]) {
    const Json& translation = sample["translations"][0];
    if (sample["source"] == kHostile) ++hostile;
    if (!translation.contains("attention")) continue;
    const Json& map = translation["attention"];
    if (map.is_null()) continue;
    ++with_attention;
    EXPECT_EQ(map["weights"].size(), map["layers"].get<std::size_t>() *
                                         map["heads"].get<std::size_t>() * map["source"].size() *
                                         map["target"].size());
  }
  EXPECT_GE(with_attention, 1U);
  EXPECT_LE(with_attention, 2U);
  EXPECT_EQ(hostile, 1U) << "as it is, for the page to show";
  const std::string text = contents_of(path("page.html"));
  EXPECT_THAT(text, Not(HasSubstr("alert(1)</script>")));
}

TEST_F(Report, TheSameRunsMakeTheSamePage) {
  report({path("validated")});
  const std::string first = contents_of(path("page.html"));
  report({path("validated"), "--workers", "1"});
  EXPECT_EQ(contents_of(path("page.html")), first);
}

TEST_F(Report, ComparesRunsAndATestText) {
  const Json page = report({path("validated"), path("run"), "--test-source", path("valid.a"),
                            "--test-target", path("valid.b")});
  ASSERT_EQ(page["runs"].size(), 2U);
  EXPECT_EQ(page["runs"][0]["scores"].size(), 6U);
  EXPECT_EQ(page["runs"][1]["scores"].size(), 3U) << "it has no validation text";
  EXPECT_THAT(page["runs"][1]["notes"].dump(), HasSubstr("names no validation text"));
  EXPECT_EQ(page["samples"][0]["translations"].size(), 1U);
}

TEST_F(Report, ARecipeThatCannotBeDoesNotKeepThePageBack) {
  const std::string run_path = copy_of("validated", "odd");
  std::string recipe = contents_of(run_path + "/recipe.yaml");
  const std::string line = "valid_beam_size: ";
  const std::size_t at = recipe.find(line);
  ASSERT_NE(at, std::string::npos);
  recipe.replace(at, recipe.find('\n', at) - at, line + "1e300");
  write_file(run_path + "/recipe.yaml", recipe);
  const Json page = report({run_path});
  EXPECT_THAT(page["runs"][0]["notes"].dump(), HasSubstr("valid_beam_size 1e+300, which cannot"));
  EXPECT_FALSE(page["samples"].empty());
}

TEST_F(Report, SaysWhatIsGone) {
  const std::string run_path = copy_of("validated", "moved");
  std::filesystem::rename(path("valid.a"), path("gone"));
  const Json page = report({run_path});
  std::filesystem::rename(path("gone"), path("valid.a"));
  EXPECT_THAT(page["runs"][0]["notes"].dump(), HasSubstr("cannot be read any more"));
  EXPECT_TRUE(page["samples"].empty());

  std::filesystem::remove(run_path + "/model.safetensors");
  folder_->file("moved/recipe.yaml", "- no\n- recipe\n");
  const Json bare = report({run_path});
  EXPECT_THAT(bare["runs"][0]["notes"].dump(), HasSubstr("There is no model to use"));
  EXPECT_THAT(bare["runs"][0]["notes"].dump(), HasSubstr("recipe cannot be read"));
  EXPECT_EQ(bare["runs"][0]["training"]["update"].size(), 3U)
      << "the curves are there all the same";
}

TEST_F(Report, TakesRunsOfOtherVersionsAndInProgress) {
  const std::string run_path = copy_of("validated", "other");
  folder_->file("other/recipe.yaml", contents_of(run_path + "/recipe.yaml") +
                                         "warp_drive: 9\npreset_of_tomorrow: [a, b]\n");
  const std::string log = contents_of(run_path + "/log.jsonl");
  folder_->file("other/log.jsonl", log.substr(0, log.size() - 7));
  const Json page = report({run_path, "--no-translate"});
  const Json& run = page["runs"][0];
  EXPECT_EQ(run["state"], "Not finished");
  EXPECT_TRUE(run["notes"].empty()) << run["notes"];
  EXPECT_EQ(run["recipe"].back()["name"], "preset_of_tomorrow");
  EXPECT_EQ(run["recipe"].back()["group"], "Others");
  EXPECT_FALSE(run.contains("scores"));
}

TEST_F(Report, TokenizersThatNeedAModelGetOne) {
  const Json page = report({path("validated"), "--tokenize", "flores200", "--tokenizer-model",
                            ATTEND_SOURCE_DIR "/tests/metrics/pieces.model"});
  EXPECT_THAT(page["runs"][0]["scores"][0]["signature"].get<std::string>(),
              HasSubstr("tok:flores200"));
}

TEST_F(Report, RefusesWhatIsNoRun) {
  const Finished missing = run({"report", path("nowhere")});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("is no folder"));
  std::filesystem::create_directory(path("empty"));
  EXPECT_THAT(run({"report", path("empty")}).err, HasSubstr("holds no log.jsonl"));
  EXPECT_EQ(run({"report"}).status, 2);
  EXPECT_EQ(run({"report", path("run"), "--test-source", path("a")}).status, 2);
  EXPECT_EQ(run({"report", path("run"), "--samples", "-1"}).status, 2);
  EXPECT_EQ(run({"report", path("run"), path("run") + "/"}).status, 2) << "twice the same";
  const std::string file = path("valid.a");
  for (const auto& [option, value] : {std::pair("--output", path("nowhere/x.html")),
                                      {"--output", path("run")},
                                      {"--tensorboard", file}}) {
    const Finished early = run({"report", path("validated"), option, value});
    EXPECT_EQ(early.status, 1) << option;
    EXPECT_THAT(early.err, Not(HasSubstr("translating"))) << option << " is seen to be wrong first";
  }
  const Finished over = run({"report", path("run"), "--output", path("run") + "/log.jsonl"});
  EXPECT_EQ(over.status, 2) << "a run's log is not written over";
}

TEST_F(Report, WritesEventFilesOfRunsThatHaveBeen) {
  report({path("validated"), path("run"), "--no-translate", "--tensorboard", path("events")});
  report({path("validated"), path("run"), "--no-translate", "--tensorboard", path("events")});
  const auto events = ::attend::testing::EventReader::read_folder(path("events") + "/validated");
  std::vector<int64_t> steps;
  for (const auto& event : events) {
    if (event.scalars.contains("train/loss")) steps.push_back(event.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12})) << "once, though it was written twice";
  EXPECT_TRUE(std::filesystem::exists(path("events") + "/run"));
}

}  // namespace
}  // namespace attend
