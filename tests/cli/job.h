#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace attend {

/// Sentences of a few words, the second language spelled in capitals.
inline std::string sentences(bool capitals) {
  const std::vector<std::string> words = {"one", "two", "three", "four", "five", "six", "seven"};
  std::string text;
  for (size_t i = 0; i < 300; ++i) {
    for (size_t word = 0; word < 2 + i % 5; ++word) {
      text += (word ? " " : "") + words[(i * 3 + word * word) % words.size()];
    }
    text += '\n';
  }
  if (capitals) std::transform(text.begin(), text.end(), text.begin(), ::toupper);
  return text;
}

/// The command on one small run, which is trained once a suite.
class Job : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    folder_->file("a", sentences(false));
    folder_->file("b", sentences(true));
    trained_ = run(train_arguments("run"));
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::vector<std::string> train_arguments(const std::string& run_name) {
    return {"train",
            "--train-source",
            path("a"),
            "--train-target",
            path("b"),
            "--run",
            path(run_name),
            "--preset",
            "tiny",
            "--layers",
            "1",
            "--d-model",
            "32",
            "--d-ff",
            "64",
            "--heads",
            "2",
            "--vocabulary-size",
            "300",
            "--batch-tokens",
            "200",
            "--stop-after",
            "12u",
            "--log-every",
            "4",
            "--checkpoint-every",
            "4u",
            "--warmup",
            "10",
            "--workers",
            "2"};
  }
  static std::vector<std::string> with(std::vector<std::string> arguments,
                                       const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::string path(const std::string& name) { return folder_->path(name); }

  void SetUp() override { ASSERT_EQ(trained_.status, 0) << trained_.err; }

  inline static std::unique_ptr<TemporaryFolder> folder_;
  inline static Finished trained_;
};

}  // namespace attend
