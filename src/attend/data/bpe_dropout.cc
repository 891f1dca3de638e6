#include "attend/data/bpe_dropout.h"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// Of valid UTF-8.
std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    characters.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

/// The pieces that merging can make.
bool is_merged(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined;
}

/// What stands for a character that is no piece: its bytes, or the unknown token.
std::vector<int32_t> stand_in(const std::string& character, const Tokenizer& tokenizer,
                              const std::array<int32_t, 256>& byte_ids) {
  if (!tokenizer.has_byte_fallback()) return {tokenizer.unk_id()};
  std::vector<int32_t> ids;
  for (const char byte : character) ids.push_back(byte_ids[static_cast<unsigned char>(byte)]);
  return ids;
}

void check(const SentencePieceFile& file, const std::string& name) {
  if (!file.is_bpe) {
    fail_usage(
        "{}: its tokenizer is no BPE model, so that there are no merges to leave out; give a BPE "
        "model (subword_model bpe), or 0",
        name);
  }
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    if (piece.type != PieceType::kUnused) continue;
    fail_usage("{}: the tokenizer's piece '{}' is marked as unused; BPE-dropout cannot do without",
               name, piece.text);
  }
}

}  // namespace

/// Numbers for pieces and for characters that are none.
class BpeDropout::Symbols {
 public:
  explicit Symbols(const SentencePieceFile& file)
      : next_(static_cast<int32_t>(file.pieces.size())) {
    for (std::size_t id = 0; id < file.pieces.size(); ++id) {
      if (is_merged(file.pieces[id].type)) {
        numbers_.emplace(file.pieces[id].text, static_cast<int32_t>(id));
      }
    }
  }

  /// -1 where it is neither.
  int32_t find(std::string_view text) const {
    const auto found = numbers_.find(std::string(text));
    return found == numbers_.end() ? -1 : found->second;
  }

  /// Of a character; a new number where it has none.
  int32_t of_character(std::string_view character) {
    const auto [place, added] = numbers_.emplace(character, next_);
    if (added) {
      unknown_.emplace_back(character);
      ++next_;
    }
    return place->second;
  }

  /// The characters that are no pieces, in the order of their numbers.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> unknown_;
  int32_t next_;
};

/// Which merges are left out.
class BpeDropout::Draws {
 public:
  Draws(double probability, RandomGenerator random)
      : threshold_(static_cast<uint64_t>(std::llround(std::ldexp(probability, 32)))),
        random_(random) {}
  bool drop() { return threshold_ > 0 && random_.next_uint32() < threshold_; }

 private:
  uint64_t threshold_;  ///< of 2^32
  RandomGenerator random_;
};

BpeDropout::BpeDropout(const Tokenizer& tokenizer, const std::string& name) {
  const SentencePieceFile file = parse_sentencepiece_file(tokenizer.serialized(), name);
  check(file, name);
  Symbols symbols(file);
  add_characters(file, symbols);
  add_merges(file, symbols);
  const std::array<int32_t, 256> byte_ids = file.byte_ids();
  for (const std::string& character : symbols.unknown()) {
    stand_ins_.push_back(stand_in(character, tokenizer, byte_ids));
  }
  space_ = symbols.find(kSpaceSymbol);
}

void BpeDropout::add_characters(const SentencePieceFile& file, Symbols& symbols) {
  begins_.push_back(0);
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    scores_.push_back(piece.score);
    if (piece.type == PieceType::kNormal) {
      for (const std::string_view character : split_characters(piece.text)) {
        characters_.push_back(symbols.of_character(character));
      }
    }
    begins_.push_back(characters_.size());
  }
}

/// Every cut of a piece into two symbols is a merge.
void BpeDropout::add_merges(const SentencePieceFile& file, const Symbols& symbols) {
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const std::string_view text = file.pieces[id].text;
    if (!is_merged(file.pieces[id].type)) continue;
    const std::size_t last_space = text.rfind(kSpaceSymbol);
    if (last_space != std::string::npos && last_space != 0) words_begin_at_space_ = false;
    std::size_t cut = 0;
    for (const std::string_view character : split_characters(text)) {
      const Symbol left = symbols.find(text.substr(0, cut)), right = symbols.find(text.substr(cut));
      if (left >= 0 && right >= 0) merges_.emplace(key_of(left, right), static_cast<Symbol>(id));
      cut += character.size();
    }
  }
}

std::span<const BpeDropout::Symbol> BpeDropout::characters_of(int32_t id) const {
  return std::span(characters_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
}

BpeDropout::Symbol BpeDropout::merge_of(Symbol left, Symbol right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? kNone : found->second;
}

void BpeDropout::operator()(std::span<const int32_t> ids, double probability,
                            RandomGenerator random, std::vector<int32_t>& to) const {
  thread_local Word word;
  Draws draws(probability, random);
  for (const int32_t id : ids) {
    const std::span<const Symbol> characters = characters_of(id);
    if (characters.empty()) {  // not of the kind that is merged
      finish_word(word, draws, to);
      to.push_back(id);
    }
    for (const Symbol character : characters) {
      if (words_begin_at_space_ && character == space_) finish_word(word, draws, to);
      word.symbols.push_back(character);
    }
  }
  finish_word(word, draws, to);
}

void BpeDropout::finish_word(Word& word, Draws& draws, std::vector<int32_t>& to) const {
  word.merges.clear();
  for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
    word.merges.push_back(merge_of(word.symbols[i], word.symbols[i + 1]));
  }
  for (int64_t at = 0; (at = next_merge(word, draws)) >= 0;) merge_at(word, at);
  const auto vocabulary = static_cast<Symbol>(scores_.size());
  for (const Symbol symbol : word.symbols) {
    if (symbol < vocabulary) {
      to.push_back(symbol);
    } else {
      const std::vector<int32_t>& ids = stand_ins_[symbol - vocabulary];
      to.insert(to.end(), ids.begin(), ids.end());
    }
  }
  word.symbols.clear();
}

/// Of the merges that are not left out the one with the highest score, the leftmost of several;
/// kNone where none is left. Draws are made from the highest down to the first that is kept: those
/// behind it would not matter.
int64_t BpeDropout::next_merge(const Word& word, Draws& draws) const {
  int64_t dropped = kNone;
  const auto before = [&](int64_t a, int64_t b) {
    const float score_a = scores_[word.merges[a]], score_b = scores_[word.merges[b]];
    return score_a > score_b || (score_a == score_b && a < b);
  };
  for (;;) {
    int64_t best = kNone;
    for (int64_t i = 0; i < std::ssize(word.merges); ++i) {
      if (word.merges[i] == kNone || (dropped >= 0 && !before(dropped, i))) continue;
      if (best < 0 || before(i, best)) best = i;
    }
    if (best < 0 || !draws.drop()) return best;
    dropped = best;
  }
}

void BpeDropout::merge_at(Word& word, int64_t position) const {
  auto& [symbols, merges] = word;
  symbols[position] = merges[position];
  symbols.erase(symbols.begin() + position + 1);
  merges.erase(merges.begin() + position);
  if (position > 0) merges[position - 1] = merge_of(symbols[position - 1], symbols[position]);
  if (position < std::ssize(merges)) {
    merges[position] = merge_of(symbols[position], symbols[position + 1]);
  }
}

void PairDropout::operator()(uint64_t key, std::vector<int32_t>& source_tokens,
                             std::vector<int32_t>& target_tokens) const {
  // The streams of random numbers of the two sides.
  constexpr uint64_t kSourceStream = 4, kTargetStream = 5;
  const auto segment = [&](const BpeDropout* dropout, double probability, uint64_t stream,
                           std::vector<int32_t>& tokens) {
    if (dropout == nullptr) return;
    std::vector<int32_t> made;
    (*dropout)(tokens, probability, RandomGenerator(key, stream), made);
    if (max_length == 0 || std::ssize(made) <= max_length) tokens = std::move(made);
  };
  segment(source.get(), source_probability, kSourceStream, source_tokens);
  segment(target.get(), target_probability, kTargetStream, target_tokens);
}

}  // namespace attend
