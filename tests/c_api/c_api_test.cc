#include "attend/c_api.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "attend/base/version.h"
#include "attend/c_api/boundary.h"
#include "attend/io/model_directory.h"
#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {
namespace {

using Lines = std::vector<std::string>;

// What programs were compiled with: none of these may ever change.
static_assert(sizeof(attend_status) == 4);
static_assert(ATTEND_OK == 0 && ATTEND_FAILED == 1 && ATTEND_WRONG_CALL == 2);
static_assert(ATTEND_CANCELLED == 3 && ATTEND_OUT_OF_MEMORY == 4);
static_assert(offsetof(attend_counts, struct_size) == 0);
static_assert(offsetof(attend_counts, lines) == 8);
static_assert(offsetof(attend_counts, blank) == 16);
static_assert(offsetof(attend_counts, repaired) == 24);
static_assert(offsetof(attend_counts, split) == 32);
static_assert(offsetof(attend_counts, source_tokens) == 40);
static_assert(offsetof(attend_counts, target_tokens) == 48);
static_assert(sizeof(attend_counts) >= 56);

/// A model folder with random weights, and what the C++ library makes of it.
class CApi : public testing::Test {
 protected:
  CApi() {
    const std::shared_ptr<const Tokenizer> tokenizer(std::shared_ptr<const Tokenizer>(),
                                                     &small_tokenizer());
    const auto model =
        random_model(search_config(tokenizer->vocabulary_size()), DType::kFloat32, 3);
    NamedTensors weights;
    for (const Parameter& parameter : model->parameters().parameters()) {
      weights.emplace_back(parameter.name, parameter.master);
    }
    save_model_directory(directory_, model->config(), tokenizer, tokenizer, weights);
  }

  attend_options* options(const std::vector<std::pair<const char*, const char*>>& values) {
    attend_options* made = nullptr;
    EXPECT_EQ(attend_options_new(&made), ATTEND_OK);
    for (const auto& [name, value] : values) {
      EXPECT_EQ(attend_options_set(made, name, value), ATTEND_OK) << attend_last_error();
    }
    return made;
  }

  attend_translator* open(const std::vector<std::pair<const char*, const char*>>& values) {
    attend_options* with = options(values);
    attend_translator* translator = nullptr;
    EXPECT_EQ(attend_translator_open(directory_.c_str(), with, &translator), ATTEND_OK)
        << attend_last_error();
    attend_options_free(with);
    return translator;
  }

  static constexpr std::pair<const char*, const char*> kTwoWorkers = {"workers", "2"};

  const TestFolder folder_;
  const std::string directory_ = folder_.path("model");
};

std::string text_of(const attend_translation* translation, std::size_t rank = 0) {
  std::size_t length = 0;
  const char* text = attend_translation_text(translation, rank, &length);
  EXPECT_EQ(text[length], '\0');
  return {text, length};
}

std::vector<const char*> pointers(const Lines& lines) {
  std::vector<const char*> all;
  for (const std::string& line : lines) all.push_back(line.data());
  return all;
}

std::vector<std::size_t> lengths(const Lines& lines) {
  std::vector<std::size_t> all;
  for (const std::string& line : lines) all.push_back(line.size());
  return all;
}

Lines translate(const attend_translator* translator, const Lines& lines) {
  attend_translations* translations = nullptr;
  EXPECT_EQ(attend_translate(translator, pointers(lines).data(), lengths(lines).data(),
                             lines.size(), &translations, nullptr),
            ATTEND_OK)
      << attend_last_error();
  Lines found;
  for (std::size_t i = 0; i < attend_translations_count(translations); ++i) {
    found.push_back(text_of(attend_translations_at(translations, i)));
  }
  attend_translations_free(translations);
  return found;
}

/// A stream of lines; cancelled by its reader or its taker where they have done so many.
struct Stream {
  Lines lines, found;
  std::size_t given = 0;
  std::size_t read_cancels_at = SIZE_MAX, take_cancels_at = SIZE_MAX;
  std::thread::id taker{};
  bool one_taker = true;

  static int read(void* user, const char** line, std::size_t* length) {
    auto& self = *static_cast<Stream*>(user);
    if (self.given == self.read_cancels_at) return -1;
    if (self.given == self.lines.size()) return 0;
    *line = self.lines[self.given].data();
    *length = self.lines[self.given++].size();
    return 1;
  }
  static int take(void* user, const attend_translation* translation) {
    auto& self = *static_cast<Stream*>(user);
    self.one_taker = self.one_taker && std::this_thread::get_id() == self.taker;
    self.found.push_back(text_of(translation));
    return self.found.size() == self.take_cancels_at ? 1 : 0;
  }
  attend_status run(const attend_translator* translator, attend_counts* counts = nullptr) {
    taker = std::this_thread::get_id();
    return attend_translate_stream(translator, &read, &take, this, counts);
  }
};

TEST_F(CApi, VersionIsTheLibrarys) { EXPECT_EQ(attend_version(), std::string(kVersion)); }

TEST_F(CApi, GivesWhatTheCppLibraryGives) {
  TranslatorOptions cpp_options;
  cpp_options.search.n_best = 3;
  cpp_options.search.max_extra_length = 5;
  cpp_options.precision = InferencePrecision::kFloat32;
  const Translator cpp(directory_, cpp_options);
  attend_translator* c = open(
      {{"n_best", "3"}, {"max-extra-length", "5"}, {"precision", "float32"}, {"workers", "2"}});
  EXPECT_EQ(attend_translator_workers(c), 2);
  EXPECT_STREQ(attend_translator_precision(c), "float32");

  Lines lines = made_up_lines(20, 4);
  lines[3] = "";
  lines[5] = std::string("a\0b", 3);
  lines[6] = "der \xFF Garten";
  attend_translations* found = nullptr;
  attend_counts counts = ATTEND_COUNTS_INIT;
  ASSERT_EQ(attend_translate(c, pointers(lines).data(), lengths(lines).data(), lines.size(), &found,
                             &counts),
            ATTEND_OK);
  TranslationCounts cpp_counts;
  const std::vector<Translation> expected = cpp.translate(lines, &cpp_counts);
  ASSERT_EQ(attend_translations_count(found), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const attend_translation* one = attend_translations_at(found, i);
    ASSERT_EQ(attend_translation_count(one), expected[i].alternatives.size());
    for (std::size_t rank = 0; rank < expected[i].alternatives.size(); ++rank) {
      const Alternative& alternative = expected[i].alternatives[rank];
      EXPECT_EQ(text_of(one, rank), alternative.text);
      EXPECT_EQ(attend_translation_score(one, rank), alternative.score);
      EXPECT_EQ(attend_translation_log_prob(one, rank), alternative.log_prob);
      EXPECT_EQ(attend_translation_tokens(one, rank), alternative.tokens);
    }
  }
  EXPECT_EQ(counts.struct_size, sizeof(counts));
  EXPECT_EQ(counts.lines, 20);
  EXPECT_EQ(counts.blank, 1);
  EXPECT_EQ(counts.repaired, 1);
  EXPECT_EQ(counts.split, 0);
  EXPECT_EQ(counts.source_tokens, cpp_counts.source_tokens);
  EXPECT_EQ(counts.target_tokens, cpp_counts.target_tokens);
  attend_translations_free(found);
  attend_translator_close(c);
}

TEST_F(CApi, LinesWithoutLengthsEndAtTheirNul) {
  attend_translator* translator = open({kTwoWorkers});
  const char* lines[] = {"haus", "", "der Garten"};
  attend_translations* found = nullptr;
  ASSERT_EQ(attend_translate(translator, lines, nullptr, 3, &found, nullptr), ATTEND_OK);
  const Lines expected = translate(translator, {"haus", "", "der Garten"});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(attend_translations_at(found, i)), expected[i]);
  }
  attend_translations_free(found);
  EXPECT_TRUE(translate(translator, {}).empty());
  attend_translator_close(translator);
}

TEST_F(CApi, WhatIsNotThereIsToldApart) {
  attend_translator* translator = open({kTwoWorkers});
  const char* line = "haus";
  attend_translations* found = nullptr;
  ASSERT_EQ(attend_translate(translator, &line, nullptr, 1, &found, nullptr), ATTEND_OK);
  EXPECT_EQ(attend_translations_at(found, 1), nullptr);
  const attend_translation* one = attend_translations_at(found, 0);
  std::size_t length = 7;
  EXPECT_EQ(attend_translation_text(one, 1, &length), nullptr);
  EXPECT_EQ(length, 0U);
  EXPECT_TRUE(std::isnan(attend_translation_score(one, 1)));
  EXPECT_TRUE(std::isnan(attend_translation_log_prob(one, 1)));
  EXPECT_EQ(attend_translation_tokens(one, 1), 0);
  EXPECT_EQ(attend_translation_count(nullptr), 0U);
  attend_translations_free(found);
  attend_translator_close(translator);
}

TEST_F(CApi, CountsOfAnOlderProgramAreLeftAlonePastItsEnd) {
  attend_translator* translator = open({kTwoWorkers});
  attend_counts counts = ATTEND_COUNTS_INIT;
  counts.struct_size = offsetof(attend_counts, repaired);
  counts.repaired = counts.target_tokens = 77;
  const char* line = "haus";
  attend_translations* found = nullptr;
  ASSERT_EQ(attend_translate(translator, &line, nullptr, 1, &found, &counts), ATTEND_OK);
  EXPECT_EQ(counts.struct_size, offsetof(attend_counts, repaired));
  EXPECT_EQ(counts.lines, 1);
  EXPECT_EQ(counts.repaired, 77);
  EXPECT_EQ(counts.target_tokens, 77);
  attend_translations_free(found);
  counts.struct_size = 0;
  EXPECT_EQ(attend_translate(translator, &line, nullptr, 1, &found, &counts), ATTEND_WRONG_CALL);
  attend_translator_close(translator);
}

TEST_F(CApi, AQuietLibraryDoesNotWarn) {
  attend_translator* translator = open({kTwoWorkers});
  const auto warnings = [&] {
    testing::internal::CaptureStderr();
    translate(translator, {"der \xFF Garten"});
    return testing::internal::GetCapturedStderr();
  };
  attend_set_quiet(1);
  EXPECT_EQ(warnings(), "");
  attend_set_quiet(0);
  expect_contains(warnings(), "warning: line 1");
  attend_translator_close(translator);
}

// ------------------------------------------------------------------------------ streams

TEST_F(CApi, AStreamGivesWhatABatchGives) {
  attend_translator* translator = open({kTwoWorkers});
  Stream stream{.lines = made_up_lines(40, 8), .found = {}};
  stream.lines[7] = "";
  attend_counts counts = ATTEND_COUNTS_INIT;
  ASSERT_EQ(stream.run(translator, &counts), ATTEND_OK) << attend_last_error();
  EXPECT_EQ(stream.found, translate(translator, stream.lines));
  EXPECT_TRUE(stream.one_taker);
  EXPECT_EQ(counts.lines, 40);
  EXPECT_EQ(counts.blank, 1);
  attend_translator_close(translator);
}

TEST_F(CApi, EitherCallbackCancels) {
  attend_translator* translator = open({kTwoWorkers});
  const Lines lines = made_up_lines(40, 8);
  const Lines expected = translate(translator, lines);
  Stream by_taker{.lines = lines, .found = {}, .take_cancels_at = 5};
  EXPECT_EQ(by_taker.run(translator), ATTEND_CANCELLED);
  EXPECT_EQ(by_taker.found, Lines(expected.begin(), expected.begin() + 5));
  Stream by_reader{.lines = lines, .found = {}, .read_cancels_at = 9};
  EXPECT_EQ(by_reader.run(translator), ATTEND_CANCELLED);
  EXPECT_EQ(by_reader.found, Lines(expected.begin(), expected.begin() + 9));
  EXPECT_EQ(translate(translator, lines), expected) << "afterwards";
  attend_translator_close(translator);
}

TEST_F(CApi, ManyThreadsShareOneTranslator) {
  attend_translator* translator = open({kTwoWorkers});
  std::vector<Lines> lines, expected;
  for (uint64_t i = 0; i < 6; ++i) {
    lines.push_back(made_up_lines(15, 30 + i));
    expected.push_back(translate(translator, lines.back()));
  }
  std::vector<Lines> found(6);
  std::atomic<int> right_errors = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      // Each thread has its own last error.
      const std::string name = "no_such_option_" + std::to_string(i);
      attend_options* none = options({});
      const attend_status status = attend_options_set(none, name.c_str(), "1");
      Stream stream{.lines = lines[i], .found = {}};
      if (i % 2 == 0) {
        found[i] = translate(translator, lines[i]);
      } else if (stream.run(translator) == ATTEND_OK) {
        found[i] = stream.found;
      }
      const bool named = std::string(attend_last_error()).find(name) != std::string::npos;
      if (status == ATTEND_WRONG_CALL && named) ++right_errors;
      attend_options_free(none);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
  EXPECT_EQ(right_errors, 6);
  attend_translator_close(translator);
}

// ------------------------------------------------------------------------------ errors

TEST_F(CApi, WrongOptionsAreNamed) {
  attend_options* with = options({});
  EXPECT_EQ(attend_options_set(with, "beam_sise", "4"), ATTEND_WRONG_CALL);
  expect_contains(attend_last_error(), "beam_size");
  EXPECT_EQ(attend_options_set(with, "beam_size", "four"), ATTEND_WRONG_CALL);
  expect_contains(attend_last_error(), "beam_size");
  expect_contains(attend_last_error(), "four");
  EXPECT_EQ(attend_options_set(with, "n_best", "9"), ATTEND_OK);
  attend_translator* translator = nullptr;
  EXPECT_EQ(attend_translator_open(directory_.c_str(), with, &translator), ATTEND_WRONG_CALL);
  expect_contains(attend_last_error(), "n_best");
  EXPECT_EQ(translator, nullptr);
  attend_options_free(with);
}

TEST_F(CApi, AnOptionMayTakeSeveralValues) {
  const Lines lines = made_up_lines(30, 6);
  const auto by_cpp = [&](const Lines& suppress) {
    TranslatorOptions cpp_options;
    cpp_options.suppress = suppress;
    Lines found;
    for (const Translation& each : Translator(directory_, cpp_options).translate(lines)) {
      found.push_back(each.text());
    }
    return found;
  };
  // Two pieces of the vocabulary, each of which is missed.
  const Lines unsuppressed = by_cpp({});
  Lines pieces;
  for (int32_t id = 3; id < small_tokenizer().vocabulary_size() && pieces.size() < 2; ++id) {
    const std::string& piece = small_tokenizer().piece(id);
    if (!piece.starts_with("\xE2\x96\x81")) continue;
    if (by_cpp({piece}) != unsuppressed) pieces.push_back(piece);
  }
  ASSERT_EQ(pieces.size(), 2U);
  const Lines expected = by_cpp(pieces);
  ASSERT_NE(expected, by_cpp({pieces[0]}));
  ASSERT_NE(expected, by_cpp({pieces[1]}));

  attend_options* with = options({kTwoWorkers});
  for (const std::string& piece : pieces) {
    ASSERT_EQ(attend_options_add(with, "suppress", piece.c_str()), ATTEND_OK);
  }
  EXPECT_EQ(attend_options_add(with, "no_such_option", "2"), ATTEND_WRONG_CALL);
  attend_translator* translator = nullptr;
  ASSERT_EQ(attend_translator_open(directory_.c_str(), with, &translator), ATTEND_OK)
      << attend_last_error();
  attend_options_free(with);
  EXPECT_EQ(translate(translator, lines), expected);
  attend_translator_close(translator);
}

TEST_F(CApi, AModelThatIsNotThereIsAFailure) {
  attend_translator* translator = nullptr;
  const std::string nowhere = folder_.path("nowhere");
  EXPECT_EQ(attend_translator_open(nowhere.c_str(), nullptr, &translator), ATTEND_FAILED);
  expect_contains(attend_last_error(), nowhere);
  EXPECT_EQ(translator, nullptr);
}

TEST_F(CApi, NullIsRefusedByName) {
  const auto refused = [](attend_status status, const std::string& name) {
    EXPECT_EQ(status, ATTEND_WRONG_CALL);
    expect_contains(attend_last_error(), name);
  };
  attend_translator* translator = open({kTwoWorkers});
  attend_options* with = options({});
  attend_translations* found = nullptr;
  const char* line = nullptr;
  const std::size_t length = 3;
  const auto read = &Stream::read;
  const auto take = &Stream::take;
  refused(attend_options_new(nullptr), "options");
  refused(attend_options_set(nullptr, "n_best", "1"), "options");
  refused(attend_options_set(with, nullptr, "1"), "name");
  refused(attend_options_set(with, "n_best", nullptr), "value");
  refused(attend_options_add(nullptr, "n_best", "1"), "options");
  refused(attend_options_add(with, nullptr, "1"), "name");
  refused(attend_options_add(with, "n_best", nullptr), "value");
  refused(attend_translator_open(nullptr, with, &translator), "directory");
  refused(attend_translator_open("x", with, nullptr), "translator");
  refused(attend_translate(nullptr, &line, &length, 1, &found, nullptr), "translator");
  refused(attend_translate(translator, nullptr, nullptr, 1, &found, nullptr), "lines");
  refused(attend_translate(translator, &line, nullptr, 1, &found, nullptr), "lines[0]");
  refused(attend_translate(translator, &line, &length, 1, &found, nullptr), "lines[0]");
  refused(attend_translate(translator, &line, &length, 0, nullptr, nullptr), "translations");
  refused(attend_translate_stream(nullptr, read, take, nullptr, nullptr), "translator");
  refused(attend_translate_stream(translator, nullptr, take, nullptr, nullptr), "read");
  refused(attend_translate_stream(translator, read, nullptr, nullptr, nullptr), "take");
  attend_options_free(nullptr);
  attend_translations_free(nullptr);
  attend_translator_close(nullptr);
  attend_options_free(with);
  attend_translator_close(translator);
}

TEST(Boundary, EveryExceptionBecomesAStatus) {
  EXPECT_EQ(guarded([] {}), ATTEND_OK);
  EXPECT_EQ(guarded([] { fail("a file"); }), ATTEND_FAILED);
  EXPECT_STREQ(attend_last_error(), "a file");
  EXPECT_EQ(guarded([] { fail_usage("an option"); }), ATTEND_WRONG_CALL);
  EXPECT_STREQ(attend_last_error(), "an option");
  EXPECT_EQ(guarded([] { throw Cancelled(); }), ATTEND_CANCELLED);
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), ATTEND_OUT_OF_MEMORY);
  EXPECT_STREQ(attend_last_error(), "out of memory");
  EXPECT_EQ(guarded([] { throw std::logic_error("a bug"); }), ATTEND_FAILED);
  EXPECT_EQ(guarded([] { throw 7; }), ATTEND_FAILED);
  EXPECT_EQ(guarded([] {}), ATTEND_OK);
  EXPECT_STRNE(attend_last_error(), "") << "a success keeps the message";
}

}  // namespace
}  // namespace attend
