// What people give `attend train` by mistake: a clear error each, and status 1.
#include <sys/stat.h>
#include <zlib.h>

#include <gtest/gtest.h>

#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

class BadData : public testing::Test {
 protected:
  /// Expects that the command fails with all `parts` in its message, and leaves no model.
  void expect_fails(const TrainOptions& options, const std::vector<std::string>& parts) {
    for (const bool dry : {false, true}) {
      std::vector<std::string> arguments = train_arguments(options);
      if (dry) arguments.emplace_back("--dry-run");
      const Finished finished = run_attend_command(arguments);
      EXPECT_EQ(finished.status, 1) << finished.err;
      EXPECT_EQ(finished.out, "");
      const bool trains = finished.err.find("training a joint") != std::string::npos;
      EXPECT_FALSE(options.tokenizer.empty() && trains) << finished.err;
      const std::size_t at = finished.err.find("error: ");
      ASSERT_NE(at, std::string::npos) << finished.err;
      const std::string message = finished.err.substr(at);
      EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
      for (const std::string& part : parts) expect_contains(message, part);
    }
    EXPECT_FALSE(std::filesystem::exists(Path(options.run) / "model.safetensors"));
  }

  TrainingFolder folder_;
  TrainOptions options_ = folder_.options("run");
};

TEST_F(BadData, AWrongPath) {
  options_.train_source = {folder_.file("no/such/file")};
  expect_fails(options_, {"no/such/file", "No such file"});
}

TEST_F(BadData, AFolder) {
  options_.train_target = {folder_.path()};
  expect_fails(options_, {folder_.path(), "is a directory; expected a text file"});
}

TEST_F(BadData, WhatCanBeReadOnlyOnce) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  options_.tokenizer.clear();
  for (const std::string& path : {pipe, std::string("-"), std::string("/dev/null")}) {
    TrainOptions options = options_;
    options.train_source = {path};
    expect_fails(options, {path, "is no regular file", "read more than once"});
    options = folder_.validated("run");
    options.valid_target = path;
    expect_fails(options, {path, "is no regular file"});
  }
}

TEST_F(BadData, IsFoundBeforeATokenizerIsTrained) {
  options_ = folder_.validated("run");
  options_.tokenizer.clear();
  options_.valid_source = folder_.file("no/such/file");
  expect_fails(options_, {"no/such/file", "No such file"});
  options_.valid_source = folder_.file("short");
  put(options_.valid_source, "one\n");
  expect_fails(options_, {options_.valid_source, "has 1 lines", "has 20"});
  options_.valid_source = folder_.file("valid.a");
  options_.train_source.push_back(folder_.file("train.a"));
  options_.train_target.push_back(folder_.file("gone"));
  expect_fails(options_, {"gone", "No such file"});
}

TEST_F(BadData, ABinaryFile) {
  put(options_.train_source[0], std::string("\x7f"
                                            "ELF\0\0\0\n",
                                            8));
  expect_fails(options_, {options_.train_source[0], "it is no text file"});
}

TEST_F(BadData, FilesOfUnequalLength) {
  put(options_.train_target[0], get(options_.train_target[0]) + "ONE MORE\n");
  expect_fails(options_, {options_.train_source[0], options_.train_target[0], "200", "201"});
}

TEST_F(BadData, AnEmptyCorpus) {
  put(options_.train_source[0], "");
  put(options_.train_target[0], "");
  expect_fails(options_, {options_.train_source[0], "pair"});
}

TEST_F(BadData, NothingThatIsKept) {
  put(options_.train_source[0], "\n \n\n");
  put(options_.train_target[0], "ONE\nTWO\nSIX\n");
  expect_fails(options_, {options_.train_source[0], "3 empty"});
}

TEST_F(BadData, AGzipFileThatWasCutOff) {
  const std::string path = folder_.file("cut.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  const std::string text = get(options_.train_source[0]);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  options_.train_source = {path};
  expect_fails(options_, {path, "cut"});
}

TEST_F(BadData, ATokenizerThatIsNone) {
  options_.tokenizer = options_.train_source[0];
  expect_fails(options_, {options_.tokenizer, "SentencePiece"});
}

}  // namespace
}  // namespace attend
