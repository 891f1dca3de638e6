#include <algorithm>
#include <cmath>
#include <cstddef>
#include <regex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sentencepiece_trainer.h>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/random.h"
#include "attend/data/text.h"
#include "attend/data/tokenizer.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

constexpr int64_t kSpecialPieces = 3;  // unk, bos, eos
constexpr int64_t kBytePieces = 256;
constexpr std::size_t kLongestSentence = 4096;  // bytes; the rest of a line is not trained on

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return position_ >= lines_.size(); }
  void Next() override { ++position_; }
  const std::string& value() const override { return lines_[position_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::size_t position_ = 0;
};

/// The length of a byte piece or special token at the start of `text`; 0 where there is none.
std::size_t special_spelling(std::string_view text) {
  for (const std::string_view token : {"<s>", "</s>", "<unk>"}) {
    if (text.starts_with(token)) return token.size();
  }
  constexpr std::size_t kByteSpelling = 6;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  const bool byte = text.size() >= kByteSpelling && text.starts_with("<0x") && is_digit(text[3]) &&
                    is_digit(text[4]) && text[5] == '>';
  return byte ? kByteSpelling : 0;
}

/// A copy without what may not become a piece: the spelling of special pieces, which would be there
/// twice, and three characters that SentencePiece keeps for itself (encode() carries all of them).
std::string trainable(std::string_view line) {
  constexpr std::string_view kReserved[] = {"\t", "\xE2\x96\x81", "\xE2\x96\x85"};
  std::string text;
  for (std::size_t i = 0; i < line.size() && text.size() < kLongestSentence;) {
    const std::string_view rest = line.substr(i);
    std::size_t skipped = special_spelling(rest);
    for (const std::string_view reserved : kReserved) {
      if (rest.starts_with(reserved)) skipped = reserved.size();
    }
    text += skipped > 0 ? ' ' : line[i];
    i += std::max<std::size_t>(skipped, 1);
  }
  // Not in the middle of a character.
  while (!text.empty() && !valid_utf8(text)) text.pop_back();
  return text;
}

/// A uniform sample without replacement (Vitter 1985, algorithm R).
std::vector<std::string> sample_lines(const TokenizerTrainingOptions& options,
                                      const NextLine& next_line) {
  std::vector<std::string> sample;
  RandomGenerator random(options.seed);
  int64_t seen = 0;
  for (std::string line; next_line(line);) {
    if (!valid_utf8(line) || is_blank(line) || line.find('\0') != std::string::npos) continue;
    std::string text = trainable(line);
    if (is_blank(text)) continue;
    ++seen;
    if (seen <= options.max_sentences) {
      sample.push_back(std::move(text));
      continue;
    }
    const uint64_t place = random.uniform_index(static_cast<uint64_t>(seen));
    if (place < sample.size()) sample[place] = std::move(text);
  }
  if (sample.empty()) fail("there is no text to train a tokenizer on: no line, or blank ones only");
  if (seen > options.max_sentences) {
    logger().info("the tokenizer is trained on {} of {} lines", options.max_sentences, seen);
  }
  return sample;
}

std::unordered_map<std::string, std::string> trainer_arguments(
    const TokenizerTrainingOptions& options) {
  return {
      {"model_type", std::string(name_of(options.subword_model))},
      {"vocab_size", std::to_string(options.vocabulary_size)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"max_sentence_length", std::to_string(4 * kLongestSentence)},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "4"},  // sums depend on it, so that it may not depend on the machine
      {"minloglevel", "3"},
  };
}

/// SentencePiece counts the characters that must be pieces, and says "Vocabulary size is smaller
/// than required_chars. 300 vs 412. ..." where they do not fit.
void refuse_small_vocabulary(const std::string& problem, const TokenizerTrainingOptions& options) {
  static const std::regex pattern("required_chars\\. \\d+ vs (\\d+)");
  std::smatch found;
  if (!std::regex_search(problem, found, pattern)) return;
  fail_usage(
      "vocabulary_size is {}, and the characters of the text alone, the special tokens and the "
      "bytes need {} pieces; raise it, or lower character_coverage, which is {}: rare characters "
      "are then carried as bytes",
      options.vocabulary_size, found[1].str(), options.character_coverage);
}

}  // namespace

std::string_view name_of(SubwordModel value) {
  return value == SubwordModel::kBpe ? "bpe" : "unigram";
}

void TokenizerTrainingOptions::validate() const {
  constexpr int64_t kLargestVocabulary = 1'000'000;
  const int64_t least = kSpecialPieces + kBytePieces + 1;
  if (vocabulary_size < least || vocabulary_size > kLargestVocabulary) {
    fail_usage(
        "vocabulary_size is {}; expected {} to {} ({} special tokens and {} bytes are in it)",
        vocabulary_size, least, kLargestVocabulary, kSpecialPieces, kBytePieces);
  }
  if (!(character_coverage > 0.9 && character_coverage <= 1.0)) {
    fail_usage("character_coverage is {}; expected more than 0.9 and at most 1",
               character_coverage);
  }
  if (max_sentences < 1) {
    fail_usage("max_sentences is {}; expected at least 1", max_sentences);
  }
}

Tokenizer Tokenizer::train(const TokenizerTrainingOptions& options, const NextLine& next_line) {
  options.validate();
  const std::vector<std::string> lines = sample_lines(options, next_line);
  Sentences sentences(lines);
  std::string serialized;
  const auto status = sentencepiece::SentencePieceTrainer::Train(trainer_arguments(options),
                                                                 &sentences, &serialized);
  if (!status.ok()) {
    refuse_small_vocabulary(status.ToString(), options);
    fail(
        "SentencePiece cannot train a tokenizer of vocabulary_size {} with character_coverage {}: "
        "{}",
        options.vocabulary_size, options.character_coverage, status.ToString());
  }
  Tokenizer tokenizer = from_serialized(std::move(serialized), "the trained tokenizer");
  if (tokenizer.vocabulary_size() < options.vocabulary_size) {
    logger().warn("the text has too few pieces for vocabulary_size {}; it is {}",
                  options.vocabulary_size, tokenizer.vocabulary_size());
  }
  return tokenizer;
}

Tokenizer Tokenizer::train(const TokenizerTrainingOptions& options,
                           const std::vector<std::string>& paths) {
  std::vector<std::string> rest(paths.rbegin(), paths.rend());
  std::unique_ptr<LineReader> reader;
  return train(options, [&](std::string& line) {
    while (reader == nullptr || !reader->next(line)) {
      if (rest.empty()) return false;
      reader = std::make_unique<LineReader>(rest.back(), ReadOptions{.refuse_binary = true});
      rest.pop_back();
    }
    return true;
  });
}

}  // namespace attend
