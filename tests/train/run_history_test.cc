#include "attend/train/run_history.h"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/train/support.h"

namespace attend {
namespace {

RunHistory history(const std::string& log) {
  std::istringstream stream(log);
  LineReader reader(stream, "log");
  return read_history([&](std::string& line) { return reader.next(line); });
}

std::string train_line(int64_t update, double loss) {
  return R"({"event":"train","time":)" + std::to_string(100 + update) + R"(,"update":)" +
         std::to_string(update) + R"(,"loss":)" + std::to_string(loss) + "}\n";
}

std::string valid_line(int64_t update, double bleu, bool best) {
  return R"({"event":"validation","update":)" + std::to_string(update) + R"(,"bleu":)" +
         std::to_string(bleu) + R"(,"best":)" + (best ? "true" : "false") + "}\n";
}

std::vector<int64_t> updates(const RunHistory& of) {
  std::vector<int64_t> updates;
  for (const auto& each : of.training) updates.push_back(each.progress.done.updates);
  return updates;
}

TEST(RunHistory, IsWhatARunLogged) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.log_every = 5;
  options.validation_metric = ValidationMetric::kBleu;
  train(options);
  LineReader reader((folder.file("run") / "log.jsonl").string());
  const RunHistory found = read_history([&](std::string& line) { return reader.next(line); });
  ASSERT_FALSE(found.training.empty());
  ASSERT_FALSE(found.validations.empty());
  const TrainProgress& last = found.training.back().progress;
  EXPECT_EQ(last.done.updates, 30);
  EXPECT_GT(last.done.tokens, 0);
  EXPECT_GT(last.done.epochs, 1);
  EXPECT_GT(last.loss, 0);
  EXPECT_GT(last.learning_rate, 0);
  EXPECT_GT(last.tokens_per_second, 0);
  EXPECT_TRUE(std::isfinite(last.gradient_norm));
  EXPECT_TRUE(found.validations.back().scores.bleu.has_value());
  EXPECT_NE(found.best_validation(), nullptr);
  EXPECT_EQ(found.pairs, TrainingFolder::kPairs);
  EXPECT_GT(found.weights, 0);
  EXPECT_EQ(found.data.at("pairs_kept"), TrainingFolder::kPairs);
  EXPECT_NE(found.finished, "");
  EXPECT_EQ(found.unreadable_lines, 0);
  EXPECT_EQ(found.done().updates, 30);
}

TEST(RunHistory, OfUpdatesThatCameTwiceTheLastCounts) {
  const std::string log = train_line(10, 4) + valid_line(10, 1, true) + train_line(20, 3) +
                          train_line(30, 2) + valid_line(30, 9, true) +
                          "{\"event\":\"resume\",\"update\":10}\n" + train_line(20, 2.5);
  const RunHistory found = history(log);
  EXPECT_EQ(updates(found), (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(found.training.back().progress.loss, 2.5);
  ASSERT_EQ(found.validations.size(), 1U);
  EXPECT_EQ(*found.best_validation()->scores.bleu, 1);
  EXPECT_EQ(found.resumes, 1);
  // Another version might not say that it resumed.
  EXPECT_EQ(updates(history(train_line(10, 4) + train_line(20, 3) + train_line(10, 2))),
            std::vector<int64_t>{10});
}

TEST(RunHistory, AnAverageOfCheckpointsCountsWhereItIsKept) {
  const std::string log = valid_line(40, 1, true) + train_line(60, 3);
  const RunHistory unused = history(log + valid_line(60, 5, true) + valid_line(60, 4, false));
  ASSERT_EQ(unused.validations.size(), 2U);
  EXPECT_EQ(unused.best_validation()->done.updates, 60);
  EXPECT_EQ(*unused.best_validation()->scores.bleu, 5);
  const RunHistory used = history(log + valid_line(60, 5, true) + valid_line(60, 6, true));
  ASSERT_EQ(used.validations.size(), 2U);
  EXPECT_EQ(*used.best_validation()->scores.bleu, 6);
  const RunHistory neither = history(log + valid_line(60, 0.5, false) + valid_line(60, 0, false));
  EXPECT_EQ(neither.best_validation()->done.updates, 40);
  EXPECT_EQ(*neither.validations.back().scores.bleu, 0.5);
}

TEST(RunHistory, ARunThatBeganAnewForgets) {
  const RunHistory found =
      history(train_line(10, 4) + "{\"event\":\"start\",\"pairs\":7}\n" + train_line(5, 3));
  EXPECT_EQ(updates(found), std::vector<int64_t>{5});
  EXPECT_EQ(found.pairs, 7);
}

TEST(RunHistory, ALineThatIsBeingWrittenIsNoDamage) {
  const std::string whole = train_line(10, 4) + train_line(20, 3);
  EXPECT_EQ(history(whole.substr(0, whole.size() - 9)).unreadable_lines, 0);
  EXPECT_EQ(updates(history(whole.substr(0, whole.size() - 9))), std::vector<int64_t>{10});
  EXPECT_EQ(history("{\"event\":\n" + whole).unreadable_lines, 1);
}

TEST(RunHistory, HowItEnded) {
  EXPECT_EQ(history(train_line(1, 1)).finished, "");
  const std::string finish = R"({"event":"finish","update":1,"reason":"enough"})"
                             "\n";
  EXPECT_EQ(history(train_line(1, 1) + finish).finished, "enough");
  EXPECT_EQ(history(finish + "{\"event\":\"resume\",\"update\":1}\n").finished, "") << "it went on";
  const std::string error = R"({"event":"error","message":"no disk"})"
                            "\n";
  EXPECT_EQ(history(train_line(1, 1) + error).error, "no disk");
  EXPECT_EQ(history(error + train_line(1, 1)).error, "");
}

TEST(RunHistory, TakesAnythingForALog) {
  const RunHistory found = history(
      "null\n[1]\n\"text\"\n{}\n\xff\xfe\n{\"event\":7}\n"
      "{\"event\":\"train\",\"update\":-3}\n{\"event\":\"train\",\"update\":1e300,\"loss\":null}\n"
      "{\"event\":\"train\",\"update\":\"5\",\"loss\":\"x\"}\n"
      "{\"event\":\"validation\",\"best\":3,\"bleu\":[]}\n{\"event\":\"start\",\"data\":[[]]}\n" +
      std::string(100'000, '[') + "\n{\"event\":\"new in version 9\"}\n");
  EXPECT_EQ(found.unreadable_lines, 7);
  EXPECT_TRUE(found.training.empty()) << "started anew";
  EXPECT_EQ(history("").done().updates, 0);
}

}  // namespace
}  // namespace attend
