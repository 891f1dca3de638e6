#include "attend/data/text.h"

#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/test_files.h"

namespace attend {
namespace {

using Lines = std::vector<std::string>;

Lines lines_in(const std::string& bytes, ReadOptions options = {}) {
  std::istringstream stream(bytes);
  LineReader reader(stream, "the stream", options);
  Lines lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  EXPECT_EQ(reader.line_number(), std::ssize(lines));
  return lines;
}

/// Standard input is `bytes` while this lives.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : saved_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

TEST(Contract01, EmptyAndBlankLinesAreLines) {
  EXPECT_EQ(lines_in(""), Lines{});
  EXPECT_EQ(lines_in("\n"), Lines{""});
  EXPECT_EQ(lines_in("\n\na\n \n\n"), (Lines{"", "", "a", " ", ""}));
}

TEST(Contract02, ALineEndsAtLineFeedOnly) {
  const std::string line =
      "a\xE2\x80\xA8"
      "b\xC2\x85"
      "c\x0C"
      "d\x0B"
      "e\x1C\x1D\x1E\xE2\x80\xA9";
  EXPECT_EQ(lines_in(line + "\nnext\n"), (Lines{line, "next"}));
}

TEST(Contract02, ACarriageReturnBeforeLineFeedIsDropped) {
  EXPECT_EQ(lines_in("a\r\nb\r\r\nc\rd\n\r\ne\r"), (Lines{"a", "b\r", "c\rd", "", "e\r"}));
}

TEST(Contract02, AByteOrderMarkAtTheStartIsDropped) {
  EXPECT_EQ(lines_in("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n"), (Lines{"one", "\xEF\xBB\xBFtwo"}));
  EXPECT_EQ(lines_in("\xEF\xBB\xBF"), Lines{});
  EXPECT_EQ(lines_in("\xEF\xBB\xBF\n"), Lines{""});
  EXPECT_EQ(lines_in("\xEF\xBB\xBF\xEF\xBB\xBF"), Lines{"\xEF\xBB\xBF"});
  EXPECT_EQ(lines_in(gzip("\xEF\xBB\xBFone")), Lines{"one"});
}

TEST(Contract02, TheLastLineNeedsNoLineFeed) {
  EXPECT_EQ(lines_in("a\nb"), lines_in("a\nb\n"));
  EXPECT_EQ(lines_in("\x1F"), Lines{"\x1F"});  // half of gzip's mark is text
}

TEST(Contract03, ALongLineComesWhole) {
  const std::string line(5'000'000, 'x');
  EXPECT_EQ(lines_in("a\n" + line + "\nb"), (Lines{"a", line, "b"}));
}

TEST(Contract03, AFileWithoutLineEndsCannotTakeAllMemory) {
  TestFolder folder;
  const std::string path = folder.write("long.txt", "a\n" + std::string(300'000, 'x'));
  const std::string message = message_of([&] { read_lines(path, {.max_line_bytes = 100'000}); });
  expect_contains(message, path + ", line 2");
  // /dev/zero never ends: it must stop by itself.
  expect_contains(message_of([] { read_lines("/dev/zero", {.max_line_bytes = 1 << 20}); }),
                  "/dev/zero");
}

TEST(Contract11, GzipIsReadAsText) {
  TestFolder folder;
  const std::string text = joined(made_up_lines(20'000, 3));
  const Lines expected = lines_in(text);
  EXPECT_EQ(read_lines(folder.write("text.gz", gzip(text))), expected);
  EXPECT_EQ(read_lines(folder.write("no_suffix", gzip(text))), expected);
  EXPECT_EQ(read_lines(folder.write("plain.gz", text)), expected);
  EXPECT_EQ(lines_in(gzip(text)), expected);
}

TEST(Contract11, GzipMembersAreReadEndToEnd) {
  const std::string members = gzip("a\nb") + gzip("") + gzip("c\nd\n");
  EXPECT_EQ(lines_in(members), (Lines{"a", "bc", "d"}));
  EXPECT_EQ(lines_in(members + std::string(1000, '\0')), (Lines{"a", "bc", "d"}));
  expect_contains(message_of([&] { lines_in(members + "more"); }), "the stream");
}

TEST(Contract11, GzipIsReadFromStandardInput) {
  TestFolder folder;
  const StandardInput input(folder.write("in.gz", gzip("a\nb\n")));
  EXPECT_EQ(read_lines("-"), (Lines{"a", "b"}));
}

TEST(Contract11, GzipCutOffAnywhereIsAnErrorNamingTheFile) {
  TestFolder folder;
  const std::string whole = gzip(joined(made_up_lines(50, 4)));
  for (std::size_t bytes = 2; bytes < whole.size(); ++bytes) {
    const std::string path = folder.write("cut.gz", whole.substr(0, bytes));
    expect_contains(message_of([&] { read_lines(path); }), path);
  }
}

TEST(Contract11, DamagedGzipIsAnErrorOrTheTextItself) {
  const std::string text = joined(made_up_lines(50, 4));
  const std::string whole = gzip(text);
  RandomGenerator random(7);
  int errors = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    damaged[2 + random.uniform_index(whole.size() - 2)] ^=
        static_cast<char>(1 << random.uniform_index(8));
    try {
      ASSERT_EQ(lines_in(damaged), lines_in(text));  // a bit of the header that says nothing
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1800);
}

TEST(LineReader, ReadsRandomBytesAsTheyAre) {
  RandomGenerator random(8);
  for (int i = 0; i < 300; ++i) {
    Lines lines;
    for (uint64_t n = random.uniform_index(40); n > 0; --n) {
      std::string line = "x";  // not a mark of gzip or byte order
      for (uint64_t m = random.uniform_index(5000); m > 0; --m) {
        const char byte = static_cast<char>(random.uniform_index(256));
        if (byte != '\n' && byte != '\r') line += byte;
      }
      lines.push_back(line);
    }
    ASSERT_EQ(lines_in(joined(lines)), lines);
    ASSERT_EQ(lines_in(gzip(joined(lines))), lines);
  }
}

TEST(LineReader, GivesALineOfAPipeAsSoonAsItIsThere) {
  for (const bool compressed : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto send = [&](std::string text) {
      if (compressed) text = gzip(text);
      ASSERT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
    };
    LineReader reader("/dev/fd/" + std::to_string(ends[0]));
    std::string line;
    send("one\n");
    ASSERT_TRUE(reader.next(line));  // would wait for ever if it wanted more bytes first
    EXPECT_EQ(line, "one");
    send("two\n");
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "two");
    close(ends[1]);
    EXPECT_FALSE(reader.next(line));
    close(ends[0]);
  }
}

TEST(LineReader, NamesAFileThatCannotBeRead) {
  TestFolder folder;
  expect_contains(message_of([&] { read_lines(folder.path("missing.txt")); }),
                  folder.path("missing.txt"));
  const std::string directory = message_of([&] { read_lines(folder.path("")); });
  expect_contains(directory, folder.path(""));
  expect_contains(directory, "directory");
  // Opens, but its first page cannot be read.
  expect_contains(message_of([] { read_lines("/proc/self/mem"); }), "/proc/self/mem");
}

TEST(LineReader, NamesAFileThatMayNotBeRead) {
  TestFolder folder;
  const std::string closed = folder.write("closed.txt", "a\n");
  chmod(closed.c_str(), 0);
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  expect_contains(message_of([&] { read_lines(closed); }), closed);
}

TEST(LineReader, RefusesWhatIsNoTextForTraining) {
  const ReadOptions training = {.refuse_binary = true};
  const std::string with_nul("a\nb\0c\n", 6);
  expect_contains(message_of([&] { lines_in(with_nul, training); }), "the stream, line 2");
  EXPECT_EQ(lines_in(with_nul).size(), 2U);  // a user may translate it
  const std::string utf16(
      "\xFF\xFE"
      "a\0b\0\n\0",
      8);
  expect_contains(message_of([&] { lines_in(utf16, training); }), "UTF-16");
  expect_contains(message_of([&] { lines_in("PK\x03\x04\xFF\xFF\n", training); }), "zip");
  expect_contains(message_of([&] {
                    lines_in(
                        "\xFD"
                        "7zXZ\n",
                        training);
                  }),
                  "xz");
  EXPECT_EQ(lines_in("BZh is text\n", training), Lines{"BZh is text"});
}

}  // namespace
}  // namespace attend
