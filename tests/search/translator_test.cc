#include "attend/search/translator.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <streambuf>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "attend/data/text.h"
#include "attend/io/model_directory.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"
#include "tests/support/captured_log.h"

namespace attend {
namespace {

using Lines = std::vector<std::string>;

std::shared_ptr<const Tokenizer> tokenizer() {
  return {std::shared_ptr<const Tokenizer>(), &small_tokenizer()};
}

TransformerConfig translator_config(int64_t max_length = 128) {
  TransformerConfig config = search_config(small_tokenizer().vocabulary_size());
  config.max_length = max_length;
  return config;
}

TranslatorOptions options_of(int64_t workers, int64_t batch_tokens = 2048) {
  return {.search = {.max_extra_length = 5, .batch_tokens = batch_tokens}, .workers = workers};
}

Translator small_translator(const TranslatorOptions& options, int64_t max_length = 128,
                            DType compute = DType::kFloat32) {
  return {random_model(translator_config(max_length), compute, 3), tokenizer(), tokenizer(),
          options};
}

Lines texts_of(const std::vector<Translation>& translations) {
  Lines texts;
  for (const Translation& translation : translations) texts.push_back(translation.text());
  return texts;
}

Lines stream(const Translator& translator, const std::string& bytes,
             TranslationCounts* counts = nullptr) {
  std::istringstream input(bytes);
  LineReader reader(input, "the input");
  Lines texts;
  const TranslationCounts found = translator.translate_stream(
      reader, [&](const Translation& translation) { texts.push_back(translation.text()); });
  if (counts != nullptr) *counts = found;
  return texts;
}

// ------------------------------------------------------------------------------ contracts

TEST(Contract01, AsManyLinesComeOutInOrder) {
  const Translator translator = small_translator(options_of(2, 64));
  Lines lines = made_up_lines(150, 5);
  lines[0] = lines[7] = lines[149] = "";
  lines[8] = "  ";
  lines[50] = "\t \xE3\x80\x80\xC2\xA0";
  TranslationCounts counts;
  const Lines found = texts_of(translator.translate(lines, &counts));
  ASSERT_EQ(found.size(), lines.size());
  EXPECT_EQ(counts.lines, 150);
  EXPECT_EQ(counts.blank, 5);
  for (const std::size_t blank : {0, 7, 8, 50, 149}) EXPECT_EQ(found[blank], "");
  std::size_t empty = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(found[i], translator.translate_line(lines[i]).text());
    EXPECT_EQ(found[i].find('\n'), std::string::npos);
    empty += found[i].empty() ? 1 : 0;
  }
  EXPECT_LT(empty, 50U);
  EXPECT_EQ(stream(translator, joined(lines)), found);
}

TEST(Contract01, NoInputGivesNoOutput) {
  const Translator translator = small_translator(options_of(1));
  EXPECT_TRUE(translator.translate({}).empty());
  EXPECT_EQ(stream(translator, ""), Lines{});
  EXPECT_EQ(stream(translator, "\n\n"), (Lines{"", ""}));
}

TEST(Contract01, ALineEndPutOutByTheModelDoesNotMakeALine) {
  int32_t line_end = 0;
  while (small_tokenizer().piece(line_end) != "<0x0A>") ++line_end;
  auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("output_projection").master;
  // All else alike: a token's score is the hidden state's product with its row.
  std::vector<float> values(static_cast<std::size_t>(table.count()), 0.0F);
  const auto row = static_cast<std::size_t>(line_end * table.columns());
  const Tensor& gain = model->parameters().find("decoder.layers.1.feed_forward_norm.bias").master;
  gain.assign(std::vector<float>(static_cast<std::size_t>(gain.count()), 1.0F));
  for (std::size_t i = 0; i < static_cast<std::size_t>(table.columns()); ++i) values[row + i] = 1;
  table.assign(values);
  const Translator translator(model, tokenizer(), tokenizer(), options_of(1));
  const std::string text = translator.translate_line("haus").text();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text, std::string(text.size(), ' '));
  EXPECT_GT(text.size(), 3U);
}

TEST(Contract02, ALineEndsAtALineFeedAlone) {
  const Translator translator = small_translator(options_of(1));
  const Lines lines = {"haus\xE2\x80\xA8garten", "der\xC2\x85 die\f und\v Ein", "two dogs."};
  const std::string bytes = "\xEF\xBB\xBF" + lines[0] + "\r\n" + lines[1] + "\n" + lines[2];
  EXPECT_EQ(stream(translator, bytes), texts_of(translator.translate(lines)));
}

TEST(Contract03, ALongLineIsTranslatedInPieces) {
  const Translator translator = small_translator(options_of(2), 12);
  const Lines sentences = {"der Garten läuft.", "Ein Haus läuft.", "two dogs."};
  const std::string line = sentences[0] + " " + sentences[1] + "  " + sentences[2];
  std::string expected;
  for (const std::string& sentence : sentences) {
    ASSERT_LE(std::ssize(small_tokenizer().encode(sentence)), 11) << "the sentences are to fit";
    expected += (expected.empty() ? "" : " ") + translator.translate_line(sentence).text();
  }
  ASSERT_GT(std::ssize(small_tokenizer().encode(sentences[0] + " " + sentences[1])), 11);
  ASSERT_GT(std::ssize(small_tokenizer().encode(sentences[1] + " " + sentences[2])), 11);

  const CapturedLog log;
  TranslationCounts counts;
  EXPECT_EQ(stream(translator, "haus\n" + line + "\n" + line, &counts),
            (Lines{translator.translate_line("haus").text(), expected, expected}));
  EXPECT_EQ(counts.split, 2);
  EXPECT_EQ(log.count("the input, line 2:"), 1U) << log.text();
  EXPECT_EQ(log.count("the input, line 3:"), 1U) << log.text();
  EXPECT_EQ(log.count("line 1:"), 0U) << log.text();
  EXPECT_EQ(log.count("2 of 3 lines"), 1U) << log.text();
}

TEST(Contract03, AVeryLongLineStopsNothing) {
  const Translator translator = small_translator(options_of(2), 12);
  std::string line;
  for (int i = 0; i < 300; ++i) line += "haus garten ";
  const CapturedLog log;
  const std::vector<Translation> found = translator.translate({"haus", line, "garten"});
  EXPECT_EQ(found[0].text(), translator.translate_line("haus").text());
  EXPECT_EQ(found[2].text(), translator.translate_line("garten").text());
  EXPECT_GT(found[1].text().size(), 500U);
}

TEST(Contract04, WhatIsNoUtf8BecomesTheReplacementCharacter) {
  const Translator translator = small_translator(options_of(1));
  const std::string repaired = translator.translate_line("der \xEF\xBF\xBD Garten").text();
  const CapturedLog log;
  TranslationCounts counts;
  EXPECT_EQ(stream(translator, "haus\nder \xFF Garten\nhaus\n", &counts)[1], repaired);
  EXPECT_EQ(counts.repaired, 1);
  EXPECT_EQ(log.count("the input, line 2:"), 1U) << log.text();
  EXPECT_EQ(log.count("line 1:") + log.count("line 3:"), 0U) << log.text();
  EXPECT_EQ(log.count("1 of 3 lines"), 1U) << log.text();
}

TEST(Contract05, TextGoesThroughTheTokenizerAndNothingElse) {
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Translator translator(model, tokenizer(), tokenizer(), options_of(1));
  const Lines lines = {"a  b", " a", "a ", "\ta\tb", "… ½ ﬁ ²", "😀 中文", "a▁b", "<s> </s>"};
  for (const std::string& line : lines) {
    const auto found = search_all(*model, {small_tokenizer().encode(line)}, options_of(1).search);
    EXPECT_EQ(translator.translate_line(line).text(),
              small_tokenizer().decode(found.front().front().tokens))
        << line;
  }
}

TEST(Contract06, TheAnswerDoesNotDependOnWorkersBatchesOrOrder) {
  Lines lines = made_up_lines(60, 9);
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    const Lines expected =
        texts_of(small_translator(options_of(1, 1'000'000), 128, compute).translate(lines));
    const Lines reversed(lines.rbegin(), lines.rend());
    for (const int64_t workers : {1, 3}) {
      for (const int64_t batch_tokens : {1, 100, 2048}) {
        const Translator translator =
            small_translator(options_of(workers, batch_tokens), 128, compute);
        EXPECT_EQ(texts_of(translator.translate(lines)), expected);
        Lines found = texts_of(translator.translate(reversed));
        std::reverse(found.begin(), found.end());
        EXPECT_EQ(found, expected);
        EXPECT_EQ(stream(translator, joined(lines)), expected);
      }
    }
  }
}

TEST(Translator, GreedySearchNeedsNoScores) {
  const Lines lines = made_up_lines(40, 3);
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    if (compute == DType::kBFloat16 && !has_bfloat16_arithmetic()) continue;
    for (const double repetition_penalty : {1.0, 1.5}) {
      TranslatorOptions options = options_of(1);
      options.search.beam_size = 1;
      options.search.no_repeat_ngram_size = 2;
      options.search.repetition_penalty = repetition_penalty;
      const Lines expected = texts_of(small_translator(options, 128, compute).translate(lines));
      options.search.scores = false;
      EXPECT_EQ(texts_of(small_translator(options, 128, compute).translate(lines)), expected);
    }
  }
}

TEST(Contract06, TheAnswerDoesNotDependOnOtherCallers) {
  const Translator translator = small_translator(options_of(2, 200));
  std::vector<Lines> lines, expected;
  for (uint64_t i = 0; i < 4; ++i) {
    lines.push_back(made_up_lines(40, 20 + i));
    expected.push_back(texts_of(translator.translate(lines.back())));
  }
  std::vector<Lines> found(lines.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    callers.emplace_back([&, i] {
      found[i] = i % 2 == 0 ? texts_of(translator.translate(lines[i]))
                            : stream(translator, joined(lines[i]));
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(found, expected);
}

TEST(Contract07, ADirectoryAndItsModelInMemoryGiveTheSame) {
  const TestFolder folder;
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path("model"), model->config(), tokenizer(), tokenizer(), weights);
  TranslatorOptions options = options_of(2);
  options.precision = InferencePrecision::kFloat32;
  const Translator loaded(folder.path("model"), options);
  EXPECT_EQ(loaded.config(), model->config());
  EXPECT_EQ(loaded.workers(), 2);
  const Lines lines = made_up_lines(20, 2);
  EXPECT_EQ(texts_of(loaded.translate(lines)),
            texts_of(small_translator(options).translate(lines)));
}

/// A model directory with a model of this seed.
std::filesystem::path saved_model(const TestFolder& folder, const std::string& name, uint64_t seed,
                                  const std::shared_ptr<const Tokenizer>& its_tokenizer) {
  TransformerConfig config = search_config(its_tokenizer->vocabulary_size());
  const auto model = random_model(config, DType::kFloat32, seed);
  NamedTensors weights;
  for (const Parameter& parameter : model->parameters().parameters()) {
    weights.emplace_back(parameter.name, parameter.master);
  }
  save_model_directory(folder.path(name), config, its_tokenizer, its_tokenizer, weights);
  return folder.path(name);
}

TEST(TranslatorOfSeveral, ChoosesByTheMeanOfTheModels) {
  const TestFolder folder;
  const auto a = saved_model(folder, "a", 3, tokenizer()),
             b = saved_model(folder, "b", 4, tokenizer());
  TranslatorOptions options = options_of(2);
  options.precision = InferencePrecision::kFloat32;
  using Directories = std::vector<std::filesystem::path>;
  const Lines lines = made_up_lines(20, 2);
  const Lines alone = texts_of(Translator(a, options).translate(lines));
  EXPECT_EQ(texts_of(Translator(Directories{a, a}, options).translate(lines)), alone);
  const Lines together = texts_of(Translator(Directories{a, b}, options).translate(lines));
  EXPECT_NE(together, alone);
  EXPECT_NE(together, texts_of(Translator(b, options).translate(lines)));
  EXPECT_EQ(together, texts_of(Translator(Directories{b, a}, options).translate(lines)));
  EXPECT_THROW(Translator(Directories{}, options), UsageError);
}

TEST(TranslatorOfSeveral, RefusesDifferentTokenizersAndNamesBoth) {
  const TestFolder folder;
  const auto a = saved_model(folder, "one", 3, tokenizer());
  const std::vector<std::string> text = made_up_lines(400, 9);
  std::size_t at = 0;
  const auto other = std::make_shared<const Tokenizer>(
      Tokenizer::train({.vocabulary_size = 300}, [&](std::string& line) {
        if (at == text.size()) return false;
        line = text[at++];
        return true;
      }));
  ASSERT_NE(other->fingerprint(), small_tokenizer().fingerprint());
  const auto b = saved_model(folder, "other", 3, other);
  const std::string message = message_of([&] {
    const Translator translator(std::vector<std::filesystem::path>{a, b}, options_of(1));
  });
  expect_contains(message, a.string());
  expect_contains(message, b.string());
  expect_contains(message, "300");
}

TEST(Contract21, ATokenizerOfAnotherVocabularyIsRefusedWithBothNumbers) {
  TransformerConfig config = translator_config();
  const int64_t right = config.target_vocabulary_size;
  ++config.target_vocabulary_size;
  const std::string message = message_of([&] {
    const Translator translator(random_model(config, DType::kFloat32, 1), tokenizer(), tokenizer(),
                                options_of(1));
  });
  expect_contains(message, std::to_string(right));
  expect_contains(message, std::to_string(right + 1));
}

// ------------------------------------------------------------------------------ n-best

TEST(Translator, GivesTheBestFirst) {
  TranslatorOptions options = options_of(1);
  options.search.n_best = 4;
  const Translator translator = small_translator(options, 12);
  const CapturedLog log;
  const std::string longer = "der Garten läuft. Ein Haus. two dogs.";
  for (const std::string& line : {std::string("der Garten"), longer}) {
    const std::vector<Alternative> found = translator.translate_line(line).alternatives;
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i - 1].score, found[i].score);
    EXPECT_LT(found[0].score, 0);
    EXPECT_GT(found[0].tokens, 0);
  }
  EXPECT_EQ(translator.translate_line(" ").alternatives.size(), 1U);
}

// ------------------------------------------------------------------------------ streams

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

TEST(Translator, AFailedSearchIsAnErrorForItsCaller) {
  const auto model = random_model(translator_config(), DType::kFloat32, 3);
  const Tensor& table = model->parameters().find("output_projection").master;
  table.assign(std::vector<float>(static_cast<std::size_t>(table.count()), NAN));
  const Translator translator(model, tokenizer(), tokenizer(), options_of(2));
  EXPECT_THROW(translator.translate(made_up_lines(10, 1)), Error);
  EXPECT_THROW(stream(translator, joined(made_up_lines(10, 1))), Error);
}

TEST(Translator, WorkersAreOneACoreOrAsManyAsAsked) {
  EXPECT_EQ(small_translator(options_of(3)).workers(), 3);
  EXPECT_GE(small_translator(options_of(0)).workers(), 1);
  EXPECT_THROW(small_translator(options_of(-1)), UsageError);
  EXPECT_THROW(small_translator(options_of(1'000'000)), UsageError);
}

TranslatorOptions detailed(int64_t workers) {
  TranslatorOptions options = options_of(workers);
  options.search.n_best = 2;
  options.details = {.tokens = true, .alignments = true, .attention = true};
  return options;
}

void expect_same_details(const Alternative& a, const Alternative& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.target_pieces, b.target_pieces);
  EXPECT_EQ(a.source_pieces, b.source_pieces);
  EXPECT_EQ(a.token_log_probs, b.token_log_probs);
  EXPECT_EQ(a.alignment, b.alignment);
  EXPECT_EQ(a.attention, b.attention);
}

TEST(Translator, SaysMoreWhereAsked) {
  const std::string line = "haus garten two dogs.";
  const Translation translation = small_translator(detailed(1)).translate_line(line);
  ASSERT_EQ(translation.alternatives.size(), 2U);
  for (const Alternative& each : translation.alternatives) {
    const auto tokens = static_cast<std::size_t>(each.tokens);
    ASSERT_EQ(each.target_pieces.size(), tokens);
    EXPECT_EQ(each.target_pieces.back(), "</s>");
    ASSERT_EQ(each.token_log_probs.size(), tokens);
    double sum = 0;
    for (const float log_prob : each.token_log_probs) sum += static_cast<double>(log_prob);
    EXPECT_NEAR(sum, each.log_prob, 1e-4);
    EXPECT_EQ(each.source_pieces.size(), small_tokenizer().encode(line).size() + 1);
    ASSERT_EQ(each.attention.size(), tokens);
    for (const auto& row : each.attention) EXPECT_EQ(row.size(), each.source_pieces.size());
    for (const WordLink& link : each.alignment) EXPECT_LT(link.source, 4);
  }
  const Translation plain = small_translator(options_of(1)).translate_line(line);
  EXPECT_EQ(plain.text(), translation.text());
  const Alternative& bare = plain.alternatives.front();
  EXPECT_TRUE(bare.target_pieces.empty() && bare.token_log_probs.empty() &&
              bare.alignment.empty() && bare.attention.empty());
  TranslatorOptions wrong = detailed(1);
  wrong.details.alignment_layer = 3;
  EXPECT_THROW(small_translator(wrong), UsageError);
}

TEST(Contract1Translator, ABlankLineHasNoDetails) {
  const Translation blank = small_translator(detailed(1)).translate_line("  ");
  ASSERT_EQ(blank.alternatives.size(), 1U);
  expect_same_details(blank.alternatives.front(), Alternative{});
}

TEST(Contract3Translator, DetailsOfPiecesFollowOneAnother) {
  const Translator translator = small_translator(detailed(2), 12);
  const CapturedLog log;
  const std::string first = "haus garten der die.", second = "two dogs play with.";
  const Alternative whole = translator.translate_line(first + " " + second).alternatives.front();
  const Alternative one = translator.translate_line(first).alternatives.front();
  const Alternative two = translator.translate_line(second).alternatives.front();
  ASSERT_EQ(log.count("translated in 2 pieces"), 1U);
  EXPECT_EQ(whole.text, one.text + " " + two.text);
  EXPECT_EQ(whole.target_pieces.size(), one.target_pieces.size() + two.target_pieces.size());
  EXPECT_EQ(whole.token_log_probs.size(), whole.target_pieces.size());
  EXPECT_EQ(whole.source_pieces.size(), one.source_pieces.size() + two.source_pieces.size());
  ASSERT_EQ(whole.attention.size(), whole.target_pieces.size());
  EXPECT_EQ(whole.attention.back(), two.attention.back());
  std::vector<WordLink> links = one.alignment;
  const auto words = static_cast<int32_t>(std::count(one.text.begin(), one.text.end(), ' ')) + 1;
  for (const WordLink& link : two.alignment) {
    links.push_back({link.source + 4, link.target + words});
  }
  EXPECT_EQ(whole.alignment, links);
}

TEST(Contract6Translator, DetailsDependNeitherOnWorkersNorOnCompany) {
  const Lines lines = made_up_lines(40, 5);
  const std::vector<Translation> together = small_translator(detailed(3)).translate(lines);
  const Translator alone = small_translator(detailed(1));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Translation each = alone.translate_line(lines[i]);
    ASSERT_EQ(each.alternatives.size(), together[i].alternatives.size());
    for (std::size_t rank = 0; rank < each.alternatives.size(); ++rank) {
      expect_same_details(each.alternatives[rank], together[i].alternatives[rank]);
    }
  }
}

}  // namespace
}  // namespace attend
