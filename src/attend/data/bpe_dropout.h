#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attend/base/random.h"
#include "attend/data/sentencepiece_file.h"
#include "attend/data/tokenizer.h"

namespace attend {

/// BPE-dropout (Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization",
/// algorithm 1): a word is merged from its characters again, and before each merge every merge that
/// is possible is left out with a probability; it ends when none is left. So a word is now whole,
/// now in parts.
///
/// It needs no text: the pieces of the usual segmentation spell the normalised one. Bytes, unknown
/// and user-defined pieces stay as they are. SentencePiece's own sampling draws from a generator of
/// the thread, and drops a merge for good; here the draws are the caller's, so that a segmentation
/// does not depend on threads, and a merge that was left out has another chance at the next step,
/// as in the paper.
///
/// A const BpeDropout may be used by many threads at once.
class BpeDropout {
 public:
  /// Throws UsageError, beginning with `name`, where `tokenizer` is no BPE model, or one with
  /// pieces marked as unused.
  BpeDropout(const Tokenizer& tokenizer, const std::string& name);

  /// Appends another segmentation of the text that `ids`, made by Tokenizer::encode, stand for.
  /// `probability` is from 0 to below 1; with 0 it is `ids`.
  void operator()(std::span<const int32_t> ids, double probability, RandomGenerator random,
                  std::vector<int32_t>& to) const;

 private:
  /// A piece, or a character that is none: these are numbered from the vocabulary's size on.
  using Symbol = int32_t;
  /// A word that is being merged. `merges[i]` is what symbols i and i + 1 become, or kNone.
  struct Word {
    std::vector<Symbol> symbols;
    std::vector<Symbol> merges;
  };
  static constexpr Symbol kNone = -1;
  class Draws;
  class Symbols;

  void add_characters(const SentencePieceFile& file, Symbols& symbols);
  void add_merges(const SentencePieceFile& file, const Symbols& symbols);
  std::span<const Symbol> characters_of(int32_t id) const;
  Symbol merge_of(Symbol left, Symbol right) const;
  void finish_word(Word& word, Draws& draws, std::vector<int32_t>& to) const;
  int64_t next_merge(const Word& word, Draws& draws) const;
  void merge_at(Word& word, int64_t position) const;

  bool words_begin_at_space_ = true;  ///< no piece has a space but at its start
  std::vector<float> scores_;         ///< of pieces: the higher, the earlier its merge
  std::vector<Symbol> characters_;
  std::vector<std::size_t> begins_;              ///< of each piece's, and their end
  std::vector<std::vector<int32_t>> stand_ins_;  ///< for characters that are no piece
  std::unordered_map<uint64_t, Symbol> merges_;  ///< by both symbols
  Symbol space_ = kNone;
};

/// BPE-dropout of training pairs, new for every pair of every epoch.
struct PairDropout {
  std::shared_ptr<const BpeDropout> source = nullptr;  ///< null: as it is
  std::shared_ptr<const BpeDropout> target = nullptr;
  double source_probability = 0;
  double target_probability = 0;
  /// Tokens; a side that would become longer stays as it is, so that nothing that was kept of the
  /// text is too long for the model.
  int64_t max_length = 0;

  explicit operator bool() const { return source != nullptr || target != nullptr; }
  /// Segments a pair anew, as a function of `key` alone.
  void operator()(uint64_t key, std::vector<int32_t>& source_tokens,
                  std::vector<int32_t>& target_tokens) const;
};

}  // namespace attend
