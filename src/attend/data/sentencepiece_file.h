#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// What attend wants to know of a SentencePiece model.
struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;
  bool is_bpe = false;
  bool byte_fallback = false;
  /// A space is put before every text, as a part of the first word's piece.
  bool adds_space = true;

  /// The piece that stands for each byte; 0 where there is none.
  std::array<int32_t, 256> byte_ids() const;
};

/// Reads and checks a serialized SentencePiece model (sentencepiece_model.proto of SentencePiece
/// 0.1.97, a protocol buffer). SentencePiece itself trusts much of it: it follows offsets in the
/// normalisation table and takes pieces for C strings. What passes here is safe to hand to it.
/// Throws Error starting with `name` and saying what is wrong.
SentencePieceFile parse_sentencepiece_file(std::string_view bytes, const std::string& name);

}  // namespace attend
