#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <streambuf>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/search/small_translator.h"

namespace attend {
namespace {

/// A pipe to read from by path.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) throw std::runtime_error("pipe failed");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }
  void write(const std::string& text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(TranslateStream, AnswersALineBeforeTheNextIsThere) {
  const Translator translator = small_translator(options_of(2));
  Pipe pipe;
  LineReader reader(pipe.path());
  std::mutex mutex;
  std::condition_variable changed;
  Lines found;
  std::thread caller([&] {
    translator.translate_stream(reader, [&](const Translation& translation) {
      const std::lock_guard lock(mutex);
      found.push_back(translation.text());
      changed.notify_all();
    });
  });
  const Lines lines = {"haus", "", "der Garten", "two dogs."};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    pipe.write(lines[i] + "\n");
    std::unique_lock lock(mutex);
    EXPECT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(60), [&] { return found.size() == i + 1; }));
  }
  pipe.close_writer();
  caller.join();
  EXPECT_EQ(found, texts_of(translator.translate(lines)));
}

/// Lines without an end, counted as they are read.
class EndlessLines : public std::streambuf {
 public:
  int64_t read() const { return read_; }

 protected:
  int_type underflow() override {
    ++read_;
    setg(line_, line_, line_ + std::size(line_));
    return traits_type::to_int_type(line_[0]);
  }

 private:
  char line_[5] = {'h', 'a', 'u', 's', '\n'};
  std::atomic<int64_t> read_ = 0;
};

TEST(TranslateStream, ReadsABoundedNumberOfLinesAheadAndStopsWithItsSink) {
  const Translator translator = small_translator(options_of(2, 50));
  EndlessLines lines;
  std::istream input(&lines);
  LineReader reader(input, "endless");
  int64_t given = 0, most_ahead = 0;
  const auto sink = [&](const Translation&) {
    if (++given % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    most_ahead = std::max(most_ahead, lines.read() - given);
    if (given == 200) throw Error("the disk is full");
  };
  EXPECT_EQ(message_of([&] { translator.translate_stream(reader, sink); }), "the disk is full");
  EXPECT_EQ(given, 200);
  EXPECT_GT(most_ahead, 1);
  EXPECT_LT(most_ahead, 200);
}

TEST(TranslateStream, WhatWasReadBeforeAnErrorIsTranslated) {
  const Translator translator = small_translator(options_of(2));
  const TestFolder folder;
  const std::string whole = gzip("haus\ngarten\n" + joined(made_up_lines(3000, 1)));
  LineReader reader(folder.write("cut.gz", std::string_view(whole).substr(0, whole.size() / 2)));
  Lines found;
  const std::string message = message_of([&] {
    translator.translate_stream(
        reader, [&](const Translation& translation) { found.push_back(translation.text()); });
  });
  expect_contains(message, "cut.gz");
  ASSERT_GT(found.size(), 2U);
  EXPECT_EQ(found[1], translator.translate_line("garten").text());
}

}  // namespace
}  // namespace attend
