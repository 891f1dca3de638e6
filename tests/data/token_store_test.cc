#include "attend/data/token_store.h"

#include <gtest/gtest.h>

#include "attend/base/random.h"
#include "tests/data/test_files.h"

namespace attend {
namespace {

using Size = TokenStore::Size;
using Mode = TokenStore::Mode;

struct Tokens {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
  bool operator==(const Tokens&) const = default;
};

std::vector<int32_t> random_tokens(RandomGenerator& random, int64_t vocabulary) {
  std::vector<int32_t> tokens(random.uniform_index(40));
  for (int32_t& each : tokens) each = static_cast<int32_t>(random.uniform_index(vocabulary));
  if (!tokens.empty()) tokens.back() = static_cast<int32_t>(vocabulary - 1);
  return tokens;
}

Tokens read(const TokenStore& store, const StoredPair& pair) {
  Tokens tokens;
  store.read(pair, tokens.source, tokens.target);
  return tokens;
}

/// A store of three pairs in a folder.
class StoreFiles {
 public:
  StoreFiles() {
    TokenStore store(folder_.path(), kVocabularies, {}, Mode::kWrite);
    TokenChunk chunk;
    chunk.add(std::vector<int32_t>{1, 2, 3}, std::vector<int32_t>{4}, kVocabularies);
    chunk.add(std::vector<int32_t>{5}, std::vector<int32_t>{6, 7}, kVocabularies);
    store.append(chunk);
    TokenChunk last;
    last.add(std::vector<int32_t>{99}, std::vector<int32_t>{199}, kVocabularies);
    store.append(last);
    store.flush();
    EXPECT_EQ(store.size(), kSize);
  }
  Path index() const { return folder_ / TokenStore::kIndexFile; }
  Path tokens() const { return folder_ / TokenStore::kTokensFile; }
  TokenStore open(Size size = kSize, Mode mode = Mode::kRead) const {
    return {folder_.path(), kVocabularies, size, mode};
  }

  static constexpr Vocabularies kVocabularies = {100, 200};
  static constexpr Size kSize = {3, 9};

 private:
  TemporaryFolder folder_;
};

TEST(TokenStore, KeepsIdsOfEveryWidth) {
  for (const Vocabularies& vocabularies :
       {Vocabularies{65'536, 500}, Vocabularies{500, 65'537}, Vocabularies{1'000'000, 1'000'000}}) {
    TokenStore store(vocabularies);
    RandomGenerator random(31);
    std::vector<Tokens> expected;
    for (int chunks = 0; chunks < 20; ++chunks) {
      TokenChunk chunk;
      for (int i = 0; i < chunks; ++i) {
        expected.push_back({random_tokens(random, vocabularies.source),
                            random_tokens(random, vocabularies.target)});
        chunk.add(expected.back().source, expected.back().target, vocabularies);
      }
      store.append(chunk);
    }
    ASSERT_EQ(store.size().pairs, std::ssize(expected));
    for (const StoredPair& pair : store.pairs(0, store.size().pairs)) {
      ASSERT_EQ(read(store, pair), expected[pair.pair]);
    }
    ASSERT_EQ(read(store, store.pair(77)), expected[77]);
    EXPECT_THROW(store.pair(store.size().pairs), Error);
  }
}

TEST(TokenStore, OpensWhatWasWritten) {
  const StoreFiles files;
  const TokenStore store = files.open();
  EXPECT_EQ(read(store, store.pair(1)), (Tokens{{5}, {6, 7}}));
  EXPECT_EQ(std::filesystem::file_size(files.index()) + std::filesystem::file_size(files.tokens()),
            TokenStore::bytes(StoreFiles::kSize, StoreFiles::kVocabularies));
}

TEST(TokenStore, ForWritingCutsOffWhatIsTooMuch) {
  const StoreFiles files;
  TokenStore store = files.open({2, 7}, Mode::kWrite);
  TokenChunk chunk;
  chunk.add(std::vector<int32_t>{8}, std::vector<int32_t>{}, StoreFiles::kVocabularies);
  store.append(chunk);
  EXPECT_EQ(store.size(), (Size{3, 8}));
  EXPECT_EQ(read(store, store.pair(2)), (Tokens{{8}, {}}));
  EXPECT_EQ(std::filesystem::file_size(files.tokens()), 16U);
}

TEST(TokenStore, FilesOfAnotherSizeAreRefused) {
  const StoreFiles files;
  for (const Size& size : {Size{4, 9}, Size{3, 10}, Size{2, 9}, Size{3, 8}, Size{-1, 9},
                           Size{3, -1}, Size{INT64_MAX, 9}, Size{3, INT64_MAX}}) {
    EXPECT_THROW(files.open(size), Error) << size.pairs << " " << size.tokens;
  }
  for (const Size& size : {Size{4, 9}, Size{3, 10}, Size{-1, 9}, Size{3, INT64_MAX}}) {
    EXPECT_THROW(files.open(size, Mode::kWrite), Error) << size.pairs << " " << size.tokens;
  }
  EXPECT_THROW(TokenStore(files.index(), StoreFiles::kVocabularies, {}, Mode::kWrite), Error);
}

TEST(TokenStore, ADamagedFileIsAnErrorThatNamesItAndNeverABadToken) {
  const StoreFiles files;
  const std::string index = get(files.index()), tokens = get(files.tokens());
  std::mt19937 random(5);
  int64_t damaged = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string one = index, other = tokens;
    std::string& hit = i % 2 == 0 ? one : other;
    hit[random() % hit.size()] = static_cast<char>(random());
    put(files.index(), one);
    put(files.tokens(), other);
    const TokenStore store = files.open();
    for (int64_t pair = 0; pair < 3; ++pair) {
      try {
        const Tokens found = read(store, store.pair(pair));
        for (const int32_t token : found.source) ASSERT_TRUE(token >= 0 && token < 100);
        for (const int32_t token : found.target) ASSERT_TRUE(token >= 0 && token < 200);
      } catch (const Error& error) {
        ++damaged;
        expect_contains(error.what(), (i % 2 == 0 ? files.index() : files.tokens()).string());
        expect_contains(error.what(), "; remove the folder ");
      }
    }
  }
  EXPECT_GT(damaged, 1000);
}

}  // namespace
}  // namespace attend
