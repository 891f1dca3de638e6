#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/subword_model.h"
#include "attend/data/text.h"

namespace attend {

struct TokenizerTrainingOptions {
  SubwordModel subword_model = SubwordModel::kBpe;
  /// Lowered with a warning where the text has fewer pieces to offer. 259 of it are the special
  /// tokens and the 256 bytes.
  int64_t vocabulary_size = 10000;
  /// The share of the text's characters that become pieces; the rest is carried as bytes.
  double character_coverage = 1.0;
  /// Lines the tokenizer is trained on; of more, a uniform sample is drawn.
  int64_t max_sentences = 2'000'000;
  uint64_t seed = 1;

  /// Throws UsageError naming the field.
  void validate() const;
};

/// A subword tokenizer: a SentencePiece model (Kudo and Richardson 2018).
///
/// Contract 5: with a model that train() made, decode(encode(text)) == text for all valid UTF-8.
/// Text is not normalised, all white space is kept, and what is in no piece is carried as bytes
/// (`<0x00>` to `<0xFF>`). A text that spells a special token ("<s>", "<0x41>") is text. U+2581, by
/// which SentencePiece writes a space inside pieces, is carried as its three bytes, whose decoding
/// SentencePiece leaves alone: nothing is escaped, and nothing can clash with the user's text.
///
/// A model made elsewhere is used as it is: it may normalise, and without byte fallback what it
/// does not know becomes its unknown token (a warning says so once, when it is loaded).
///
/// A const Tokenizer may be used by many threads at once.
class Tokenizer {
 public:
  /// Reads a SentencePiece model. The file is hostile: it is checked before SentencePiece sees it.
  /// Throws Error naming the file and what is wrong.
  static Tokenizer load(const std::string& path);
  /// The same from the bytes of such a file; `name` is for errors.
  static Tokenizer from_serialized(std::string bytes, const std::string& name);
  /// Trains a model. The same lines, options and version of SentencePiece make the same bytes.
  /// Blank and ill-formed lines are left out. Throws Error where there is no text, and UsageError
  /// where the options cannot be met.
  static Tokenizer train(const TokenizerTrainingOptions& options, const NextLine& next_line);
  /// The same over the lines of files, all together (a joint vocabulary).
  static Tokenizer train(const TokenizerTrainingOptions& options,
                         const std::vector<std::string>& paths);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of one line, without begin and end. `text` must be valid UTF-8.
  std::vector<int32_t> encode(std::string_view text) const;
  /// Text of token ids. Special tokens are nothing, save unk, which is " ⁇ " (U+2047); bytes that
  /// are no UTF-8 become U+FFFD. Throws Error for an id out of range.
  std::string decode(std::span<const int32_t> ids) const;

  /// A piece as the model spells it, with U+2581 for a space. Throws Error for an id out of range.
  const std::string& piece(int32_t id) const;
  /// encode() spelled in pieces.
  std::vector<std::string> encode_as_pieces(std::string_view text) const;

  int64_t vocabulary_size() const;
  int32_t unk_id() const;
  int32_t bos_id() const;
  int32_t eos_id() const;
  bool has_byte_fallback() const;
  /// The most bytes of text that one token stands for, and 1 at least.
  int64_t longest_piece() const;

  /// The model's bytes, for tokenizer.model in a model directory.
  const std::string& serialized() const;
  /// 16 hexadecimal digits: FNV-1a of serialized(), to tell whether two tokenizers are the same.
  const std::string& fingerprint() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace attend
