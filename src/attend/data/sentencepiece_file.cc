#include "attend/data/sentencepiece_file.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <unordered_set>

#include "attend/base/error.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

constexpr std::size_t kLongestPiece = 4096;
constexpr float kLargestScore = 1e9f;

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      ///< of a number
  std::string_view bytes;  ///< of a string or a message
};

/// The fields of one protocol buffer message.
class MessageReader {
 public:
  MessageReader(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = Field();
    field.number = tag >> 3;
    field.type = static_cast<WireType>(tag & 7);
    switch (field.type) {
      case WireType::kVarint:
        field.value = varint();
        break;
      case WireType::kFixed64:
        field.value = fixed(8);
        break;
      case WireType::kFixed32:
        field.value = fixed(4);
        break;
      case WireType::kBytes:
        field.bytes = take(varint());
        break;
      default:
        damaged();
    }
    if (field.number == 0) damaged();
    return true;
  }

  [[noreturn]] void damaged() const {
    fail("{} is no SentencePiece model, or it is damaged or cut off", name_);
  }

  /// Damaged, unless the field has the type that the format gives it.
  void expect(const Field& field, WireType type) const {
    if (field.type != type) damaged();
  }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) damaged();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  uint64_t fixed(std::size_t count) {
    const std::string_view taken = take(count);
    uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    }
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }

  std::string_view rest_;
  const std::string& name_;
};

SentencePieceFile::Piece parse_piece(std::string_view bytes, const std::string& name) {
  SentencePieceFile::Piece piece;
  MessageReader reader(bytes, name);
  for (Field field; reader.next(field);) {
    if (field.number == 1) {
      reader.expect(field, WireType::kBytes);
      piece.text = field.bytes;
    } else if (field.number == 2) {
      reader.expect(field, WireType::kFixed32);
      const auto bits = static_cast<uint32_t>(field.value);
      std::memcpy(&piece.score, &bits, sizeof bits);
    } else if (field.number == 3) {
      reader.expect(field, WireType::kVarint);
      if (field.value < 1 || field.value > 6) {
        fail("{}: piece '{}' has type {}; expected 1 to 6", name, piece.text, field.value);
      }
      piece.type = static_cast<PieceType>(field.value);
    }
  }
  return piece;
}

void parse_trainer(std::string_view spec, const std::string& name, SentencePieceFile& file) {
  constexpr uint64_t kModelType = 3, kWhiteSpaceAsSuffix = 24, kByteFallback = 35;
  constexpr uint64_t kBpe = 2;
  MessageReader reader(spec, name);
  for (Field field; reader.next(field);) {
    if (field.number != kModelType && field.number != kWhiteSpaceAsSuffix &&
        field.number != kByteFallback) {
      continue;
    }
    reader.expect(field, WireType::kVarint);
    if (field.number == kModelType && (field.value < 1 || field.value > 4)) {
      fail("{}: the model has type {}; expected 1 (unigram) to 4 (char)", name, field.value);
    }
    if (field.number == kModelType) file.is_bpe = field.value == kBpe;
    if (field.number == kWhiteSpaceAsSuffix && field.value != 0) file.adds_space = false;
    if (field.number == kByteFallback) file.byte_fallback = field.value != 0;
  }
}

/// The table of a normaliser: the size of a double-array trie (darts-clone) in bytes, the trie, and
/// the strings, each ended by NUL, that its leaves point to. Every step that a look-up can take
/// from any node must stay inside.
void check_charsmap(std::string_view table, const std::string& name) {
  const auto broken = [&] { fail("{}: its normalisation table is damaged", name); };
  const auto unit_at = [&](std::size_t index) {
    uint32_t unit = 0;
    std::memcpy(&unit, table.data() + 4 * index, sizeof unit);
    return unit;
  };
  if (table.empty()) return;
  if (table.size() < 4) broken();
  const std::size_t trie_bytes = unit_at(0);
  table.remove_prefix(4);
  if (trie_bytes == 0 || trie_bytes % 1024 != 0 || trie_bytes >= table.size()) broken();
  const std::string_view strings = table.substr(trie_bytes);
  if (strings.back() != '\0' || !valid_utf8(strings)) broken();

  constexpr uint32_t kValueBit = uint32_t{1} << 31;
  const std::size_t units = trie_bytes / 4;  // a multiple of 256: a label moves within 256 units
  for (std::size_t i = 0; i < units; ++i) {
    const uint32_t unit = unit_at(i);
    if ((unit & kValueBit) != 0 && i != 0) continue;  // a value: no label matches it
    const std::size_t offset = std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6);
    const std::size_t child = i ^ (offset & 0xFFFFFFFF);
    if (child >= units) broken();
    const bool has_leaf = (unit >> 8 & 1) != 0;
    if (has_leaf && (unit_at(child) & ~kValueBit) >= strings.size()) broken();
  }
}

void parse_normalizer(std::string_view spec, const std::string& name, SentencePieceFile& file) {
  constexpr uint64_t kPrecompiledCharsmap = 2, kAddDummyPrefix = 3, kEscapeWhiteSpace = 5;
  MessageReader reader(spec, name);
  for (Field field; reader.next(field);) {
    if (field.number == kPrecompiledCharsmap) {
      reader.expect(field, WireType::kBytes);
      check_charsmap(field.bytes, name);
    } else if (field.number == kAddDummyPrefix || field.number == kEscapeWhiteSpace) {
      reader.expect(field, WireType::kVarint);
      if (field.value == 0) file.adds_space = false;
    }
  }
}

/// "<0x00>" to "<0xFF>"; -1 for anything else.
int byte_of_piece(std::string_view piece) {
  for (int byte = 0; byte < 256; ++byte) {
    if (piece == fmt::format("<0x{:02X}>", byte)) return byte;
  }
  return -1;
}

void check_pieces(const SentencePieceFile& file, const std::string& name) {
  std::array<bool, 256> bytes_seen{};
  std::unordered_set<std::string_view> seen;
  int64_t unknown = 0, normal = 0;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    const std::string& text = piece.text;
    if (text.empty() || text.size() > kLongestPiece || text.find('\0') != std::string::npos ||
        !valid_utf8(text)) {
      fail("{}: piece {} is empty, no UTF-8, or longer than {} bytes", name, id, kLongestPiece);
    }
    if (!seen.insert(text).second) fail("{}: piece '{}' is there twice", name, text);
    if (!(std::abs(piece.score) <= kLargestScore)) {
      fail("{}: piece '{}' has the score {}; expected a finite number", name, text, piece.score);
    }
    if (piece.type == PieceType::kUnknown) ++unknown;
    if (piece.type == PieceType::kNormal) ++normal;
    if (piece.type != PieceType::kByte) continue;
    const int byte = byte_of_piece(text);
    if (byte < 0) fail("{}: the byte piece '{}' is not spelled like <0x41>", name, text);
    bytes_seen[byte] = true;
  }
  if (unknown != 1) fail("{}: it has {} unknown tokens; expected 1", name, unknown);
  if (normal == 0) fail("{}: it has no pieces but special ones", name);
  for (int byte = 0; file.byte_fallback && byte < 256; ++byte) {
    if (!bytes_seen[byte]) {
      fail("{}: it has byte fallback, but no piece <0x{:02X}>", name, byte);
    }
  }
}

}  // namespace

std::array<int32_t, 256> SentencePieceFile::byte_ids() const {
  std::array<int32_t, 256> ids{};
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type != PieceType::kByte) continue;
    ids[std::stoul(pieces[id].text.substr(1, 4), nullptr, 16)] = static_cast<int32_t>(id);
  }
  return ids;
}

SentencePieceFile parse_sentencepiece_file(std::string_view bytes, const std::string& name) {
  constexpr uint64_t kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3, kDenormalizerSpec = 5;
  SentencePieceFile file;
  MessageReader reader(bytes, name);
  for (Field field; reader.next(field);) {
    if (field.number < kPieces || field.number > kDenormalizerSpec) continue;
    reader.expect(field, WireType::kBytes);
    switch (field.number) {
      case kPieces:
        file.pieces.push_back(parse_piece(field.bytes, name));
        break;
      case kTrainerSpec:
        parse_trainer(field.bytes, name, file);
        break;
      case kNormalizerSpec:
      case kDenormalizerSpec:
        parse_normalizer(field.bytes, name, file);
        break;
      default:
        break;
    }
  }
  if (file.pieces.empty()) reader.damaged();
  check_pieces(file, name);
  return file;
}

}  // namespace attend
