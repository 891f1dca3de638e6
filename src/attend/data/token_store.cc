#include "attend/data/token_store.h"

#include <algorithm>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 24;
constexpr std::size_t kLongestSequence = std::size_t{1} << 30;

/// The narrow type is used for ids up to 65 535.
template <typename Stored>
void write_as(std::byte* to, std::span<const int32_t> tokens) {
  auto* stored = reinterpret_cast<Stored*>(to);
  for (const int32_t token : tokens) *stored++ = static_cast<Stored>(token);
}

template <typename Stored>
void read_as(const std::byte* from, int64_t count, std::vector<int32_t>& tokens) {
  const auto* stored = reinterpret_cast<const Stored*>(from);
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(stored[i]));
}

}  // namespace

TokenStore::TokenStore(int64_t vocabulary_size)
    : token_bytes_(vocabulary_size <= std::numeric_limits<uint16_t>::max() + 1 ? sizeof(uint16_t)
                                                                               : sizeof(uint32_t)) {
}

void TokenStore::append(std::span<const int32_t> source, std::span<const int32_t> target) {
  if (std::max(source.size(), target.size()) > kLongestSequence) {
    fail("a sentence has {} tokens; at most {} can be kept", std::max(source.size(), target.size()),
         kLongestSequence);
  }
  const std::size_t bytes = token_bytes_ * (source.size() + target.size());
  if (chunks_.empty() || chunks_.back().capacity - chunks_.back().used < bytes) {
    const std::size_t capacity = std::max(kChunkBytes, bytes);
    // Not make_unique, which would touch memory that a small corpus never needs.
    chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[capacity]), capacity, 0});
  }
  Chunk& chunk = chunks_.back();
  pairs_.push_back({static_cast<uint32_t>(chunks_.size() - 1), static_cast<uint32_t>(chunk.used),
                    static_cast<uint32_t>(source.size()), static_cast<uint32_t>(target.size())});
  write(chunk.bytes.get() + chunk.used, source);
  write(chunk.bytes.get() + chunk.used + token_bytes_ * source.size(), target);
  chunk.used += bytes;
}

void TokenStore::append_source(int64_t pair, std::vector<int32_t>& tokens) const {
  const Pair& place = pairs_[pair];
  read(chunks_[place.chunk].bytes.get() + place.offset, place.source_length, tokens);
}

void TokenStore::append_target(int64_t pair, std::vector<int32_t>& tokens) const {
  const Pair& place = pairs_[pair];
  const std::byte* source = chunks_[place.chunk].bytes.get() + place.offset;
  read(source + token_bytes_ * place.source_length, place.target_length, tokens);
}

void TokenStore::write(std::byte* to, std::span<const int32_t> tokens) const {
  if (token_bytes_ == sizeof(uint16_t)) {
    write_as<uint16_t>(to, tokens);
  } else {
    write_as<uint32_t>(to, tokens);
  }
}

void TokenStore::read(const std::byte* from, int64_t count, std::vector<int32_t>& tokens) const {
  if (token_bytes_ == sizeof(uint16_t)) {
    read_as<uint16_t>(from, count, tokens);
  } else {
    read_as<uint32_t>(from, count, tokens);
  }
}

}  // namespace attend
