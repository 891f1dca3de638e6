#include "attend/report/samples.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace attend {
namespace {

std::vector<std::size_t> lines_of(const std::vector<Sample>& samples, SampleKind kind) {
  std::vector<std::size_t> lines;
  for (const Sample& each : samples) {
    if (each.kind == kind) lines.push_back(each.line);
  }
  return lines;
}

std::vector<std::string> texts(std::size_t count) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) lines.push_back("line " + std::to_string(i));
  return lines;
}

TEST(Samples, AreTheBestTheWorstAndOthers) {
  std::vector<double> scores(100);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<double>(i * 37 % 100);
  const auto samples = choose_samples(texts(100), scores, 11, 1);
  ASSERT_EQ(samples.size(), 11U);
  const auto score_of = [&](SampleKind kind) {
    std::vector<double> found;
    for (const std::size_t line : lines_of(samples, kind)) found.push_back(scores[line]);
    return found;
  };
  EXPECT_EQ(score_of(SampleKind::kBest), (std::vector<double>{99, 98, 97}));
  EXPECT_EQ(score_of(SampleKind::kWorst), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(lines_of(samples, SampleKind::kRandom).size(), 5U);
  std::set<std::size_t> different;
  for (const Sample& each : samples) different.insert(each.line);
  EXPECT_EQ(different.size(), samples.size());
}

TEST(Samples, DependOnTheSeedAlone) {
  const std::vector<double> scores(200, 1.0);
  const auto random_of = [&](uint64_t seed) {
    return lines_of(choose_samples(texts(200), scores, 9, seed), SampleKind::kRandom);
  };
  EXPECT_EQ(random_of(1), random_of(1));
  EXPECT_NE(random_of(1), random_of(2));
}

TEST(Samples, LeaveOutBlankAndRepeatedLines) {
  const std::vector<std::string> lines = {"a", " ", "a", "b", "", "c", "b"};
  const auto samples = choose_samples(lines, {1, 9, 9, 2, 0, 3, 9}, 100, 1);
  std::vector<std::size_t> chosen;
  for (const Sample& each : samples) chosen.push_back(each.line);
  std::sort(chosen.begin(), chosen.end());
  EXPECT_EQ(chosen, (std::vector<std::size_t>{0, 3, 5}));
  EXPECT_TRUE(choose_samples(lines, {1, 9, 9, 2, 0, 3, 9}, 0, 1).empty());
  EXPECT_TRUE(choose_samples({"", " "}, {0, 0}, 5, 1).empty());
}

}  // namespace
}  // namespace attend
