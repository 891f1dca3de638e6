#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/data/tokenizer.h"
#include "attend/data/utf8.h"
#include "tests/io/support.h"

namespace attend {

/// A folder that is gone after the test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "attend_data_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

/// One gzip member.
inline std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Lines of made-up words, some capitalised and with punctuation.
inline std::vector<std::string> made_up_lines(int count, uint64_t seed) {
  const std::vector<std::string> words = {"haus",  "garten", "der", "die",   "Ein",  "läuft",
                                          "schön", "über",   "two", "dogs.", "play", "with"};
  RandomGenerator random(seed);
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    std::string line;
    for (uint64_t n = 1 + random.uniform_index(12); n > 0; --n) {
      line += (line.empty() ? "" : " ") + words[random.uniform_index(words.size())];
    }
    lines.push_back(line);
  }
  return lines;
}

inline NextLine lines_of(const std::vector<std::string>& lines) {
  return [&lines, position = std::size_t{0}](std::string& line) mutable {
    if (position == lines.size()) return false;
    line = lines[position++];
    return true;
  };
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A small tokenizer, trained once.
inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> lines = made_up_lines(500, 1);
    return Tokenizer::train({.vocabulary_size = 320}, lines_of(lines));
  }();
  return tokenizer;
}

/// A random Unicode scalar value: often ASCII, often one that is hard.
inline char32_t random_character(RandomGenerator& random) {
  static const std::vector<char32_t> hard = {
      ' ',      ' ',      '\t',     0,      '<',    '>',    0x2581, 0x2582,  0x2585,
      0x2047,   0xFFFD,   0xFEFF,   0x00A0, 0x3000, 0x2028, 0x0085, 0x2026,  0xBD,
      0xFB01,   0xB2,     0x0301,   0x200D, 0x05D0, 0x0915, 0x4E2D, 0x1F600, 0x1F468,
      0x10FFFF, 0x10FFFD, 0x10FFFC, 0xE000, 0xD7FF, 0xFFFF};
  switch (random.uniform_index(4)) {
    case 0:
      return hard[random.uniform_index(hard.size())];
    case 1: {
      const auto drawn = static_cast<char32_t>(random.uniform_index(0x110000));
      return drawn >= 0xD800 && drawn < 0xE000 ? U'x' : drawn;
    }
    default:
      return static_cast<char32_t>(' ' + random.uniform_index(95));
  }
}

inline std::string random_text(RandomGenerator& random, uint64_t longest) {
  std::string text;
  for (uint64_t n = random.uniform_index(longest + 1); n > 0; --n) {
    append_utf8(random_character(random), text);
  }
  return text;
}

}  // namespace attend
