#include "attend/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <sentencepiece_processor.h>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/data/byte_source.h"
#include "attend/data/fingerprint.h"
#include "attend/data/sentencepiece_file.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581
constexpr std::size_t kLargestModel = std::size_t{1} << 28;
/// Longer texts are encoded in parts, because SentencePiece takes some hundred bytes a character.
constexpr std::size_t kPartBytes = std::size_t{1} << 18;

std::string read_model(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    fail("{} is a folder; expected a SentencePiece model, a file", path);
  }
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  std::string bytes;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (const std::size_t count = source->read(buffer)) {
    bytes.append(buffer.data(), count);
    if (bytes.size() > kLargestModel) {
      fail("{} is larger than {} bytes; expected a SentencePiece model", path, kLargestModel);
    }
  }
  return bytes;
}

/// Where to cut off a part of `text`: before a single space between other characters. SentencePiece
/// puts a space before each part, and no piece has a space but at its start, so that the parts'
/// tokens are those of the whole. The end of the text where there is no such space.
std::size_t part_end(std::string_view text) {
  if (text.size() <= kPartBytes) return text.size();
  for (std::size_t i = kPartBytes; i + 1 < text.size(); ++i) {
    if (text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] != ' ') return i;
  }
  return text.size();
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  for (std::size_t found; (found = text.find(from)) != std::string_view::npos;) {
    replaced.append(text.substr(0, found)).append(to);
    text.remove_prefix(found + from.size());
  }
  return replaced.append(text);
}

}  // namespace

struct Tokenizer::State {
  sentencepiece::SentencePieceProcessor processor;
  std::string serialized;
  std::string fingerprint;
  bool byte_fallback = false;
  bool cuts_at_spaces = false;
  int64_t longest_piece = 1;
  std::array<int32_t, 256> byte_ids{};
  std::vector<char32_t> stand_ins;  ///< private-use characters that no piece contains

  void describe(const SentencePieceFile& file);
  void append_encoded(std::string_view text, std::vector<int32_t>& ids) const;
  void append_part(const std::string& text, std::vector<int32_t>& ids) const;
  void encode_space_symbols(std::string_view text, std::vector<int32_t>& ids) const;
  std::string stand_in_for(std::string_view text) const;
  void check_id(int32_t id) const;
};

void Tokenizer::State::describe(const SentencePieceFile& file) {
  constexpr char32_t kLastPrivate = 0x10FFFD;
  constexpr int kStandIns = 64;
  byte_fallback = file.byte_fallback;
  byte_ids = file.byte_ids();
  cuts_at_spaces = file.adds_space;
  std::string all_pieces;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    longest_piece = std::max(longest_piece, static_cast<int64_t>(piece.text.size()));
    all_pieces += piece.text;
    if (piece.text.rfind(kSpaceSymbol) != 0 &&
        piece.text.rfind(kSpaceSymbol) != std::string::npos) {
      cuts_at_spaces = false;
    }
  }
  for (char32_t candidate = kLastPrivate; std::ssize(stand_ins) < kStandIns; --candidate) {
    std::string character;
    append_utf8(candidate, character);
    if (all_pieces.find(character) == std::string::npos) stand_ins.push_back(candidate);
  }
}

void Tokenizer::State::append_part(const std::string& text, std::vector<int32_t>& ids) const {
  std::vector<int> part;
  const auto status = processor.Encode(text, &part);
  if (!status.ok()) fail("SentencePiece cannot encode '{}': {}", text, status.ToString());
  ids.insert(ids.end(), part.begin(), part.end());
}

void Tokenizer::State::append_encoded(std::string_view text, std::vector<int32_t>& ids) const {
  while (!text.empty()) {
    const std::size_t end = cuts_at_spaces ? part_end(text) : text.size();
    append_part(std::string(text.substr(0, end)), ids);
    text.remove_prefix(std::min(end + 1, text.size()));  // the space comes back with the next part
  }
}

std::string Tokenizer::State::stand_in_for(std::string_view text) const {
  for (const char32_t candidate : stand_ins) {
    std::string character;
    append_utf8(candidate, character);
    if (text.find(character) == std::string_view::npos) return character;
  }
  fail("a text has U+2581 and {} different characters of the private plane; that is too many",
       stand_ins.size());
}

/// SentencePiece would take U+2581 for a space. A character that is in no piece and not in the text
/// stands in for it; what SentencePiece makes of that, its four bytes, becomes the three of U+2581.
void Tokenizer::State::encode_space_symbols(std::string_view text,
                                            std::vector<int32_t>& ids) const {
  const std::string stand_in = stand_in_for(text);
  const auto ids_of_bytes = [&](std::string_view bytes) {
    std::vector<int32_t> made;
    for (const char byte : bytes) made.push_back(byte_ids[static_cast<unsigned char>(byte)]);
    return made;
  };
  const std::vector<int32_t> from = ids_of_bytes(stand_in), to = ids_of_bytes(kSpaceSymbol);
  std::vector<int32_t> encoded;
  append_encoded(replace_all(text, kSpaceSymbol, stand_in), encoded);
  for (auto position = encoded.begin();;) {
    const auto found = std::search(position, encoded.end(), from.begin(), from.end());
    ids.insert(ids.end(), position, found);
    if (found == encoded.end()) break;
    ids.insert(ids.end(), to.begin(), to.end());
    position = found + std::ssize(from);
  }
}

void Tokenizer::State::check_id(int32_t id) const {
  if (id >= 0 && id < processor.GetPieceSize()) return;
  fail("token id {} is out of range; the vocabulary has {} pieces", id, processor.GetPieceSize());
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::string& path) {
  return from_serialized(read_model(path), path);
}

Tokenizer Tokenizer::from_serialized(std::string bytes, const std::string& name) {
  const SentencePieceFile file = parse_sentencepiece_file(bytes, name);
  auto state = std::make_unique<State>();
  const auto status = state->processor.LoadFromSerializedProto(bytes);
  if (!status.ok()) fail("{}: SentencePiece cannot use it: {}", name, status.ToString());
  state->describe(file);
  if (!state->byte_fallback) {
    logger().warn("{} has no byte fallback: characters that it does not know will be lost", name);
  }
  Fingerprint fingerprint;
  fingerprint.add(bytes);
  state->fingerprint = fingerprint.hex();
  state->serialized = std::move(bytes);
  return Tokenizer(std::move(state));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  if (state_->byte_fallback && text.find(kSpaceSymbol) != std::string_view::npos) {
    state_->encode_space_symbols(text, ids);
  } else {
    state_->append_encoded(text, ids);
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) state_->check_id(id);
  std::string text;
  const auto status = state_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) fail("SentencePiece cannot decode: {}", status.ToString());
  return text;
}

const std::string& Tokenizer::piece(int32_t id) const {
  state_->check_id(id);
  return state_->processor.IdToPiece(id);
}

std::vector<std::string> Tokenizer::encode_as_pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const int32_t id : encode(text)) pieces.push_back(piece(id));
  return pieces;
}

int64_t Tokenizer::vocabulary_size() const { return state_->processor.GetPieceSize(); }
int32_t Tokenizer::unk_id() const { return state_->processor.unk_id(); }
int32_t Tokenizer::bos_id() const { return state_->processor.bos_id(); }
int32_t Tokenizer::eos_id() const { return state_->processor.eos_id(); }
bool Tokenizer::has_byte_fallback() const { return state_->byte_fallback; }
int64_t Tokenizer::longest_piece() const { return state_->longest_piece; }
const std::string& Tokenizer::serialized() const { return state_->serialized; }
const std::string& Tokenizer::fingerprint() const { return state_->fingerprint; }

}  // namespace attend
