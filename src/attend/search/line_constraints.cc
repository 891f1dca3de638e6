#include "attend/search/line_constraints.h"

#include <algorithm>
#include <string_view>

#include "attend/base/error.h"
#include "attend/data/tokenizer.h"
#include "attend/data/utf8.h"
#include "attend/search/beam.h"
#include "attend/search/translator.h"

namespace attend {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

std::vector<int32_t> encode_text(const std::string& text, const Tokenizer& tokenizer,
                                 const std::string& where) {
  if (!valid_utf8(text)) fail("{}: a prefix or required phrase is not UTF-8", where);
  return tokenizer.encode(text);
}

int32_t id_of_piece(const std::string& piece, const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.piece(id) == piece) return id;
  }
  fail_usage("suppress: \"{}\" is no piece of the vocabulary; a word is written without U+2581",
             piece);
}

}  // namespace

SentenceConstraints encode_constraints(const LineConstraints& constraints,
                                       const Tokenizer& tokenizer, const std::string& where) {
  SentenceConstraints encoded;
  encoded.prefix = encode_text(constraints.prefix, tokenizer, where);
  for (const std::string& phrase : constraints.required) {
    encoded.required.push_back(encode_text(phrase, tokenizer, where));
    if (std::ranges::find(encoded.required.back(), tokenizer.unk_id()) !=
        encoded.required.back().end()) {
      fail("{}: the model's vocabulary cannot spell the required \"{}\"", where, phrase);
    }
  }
  return encoded;
}

void check_request(const SearchRequest& request, int64_t longest, const SearchTokens& tokens,
                   const SearchOptions& options, const std::string& where) {
  try {
    const Beam beam(request, longest, tokens, options);
  } catch (const UsageError& error) {
    fail_usage("{}: {}", where, error.what());
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

SearchTokens with_suppressed(SearchTokens tokens, const std::vector<std::string>& words,
                             const Tokenizer& tokenizer) {
  for (const std::string& word : words) {
    if (!valid_utf8(word)) fail_usage("suppress: found \"{}\", expected UTF-8", word);
    if (word.starts_with(kSpaceSymbol)) {
      tokens.suppressed.push_back(id_of_piece(word, tokenizer));
      continue;
    }
    std::vector<int32_t> ids = tokenizer.encode(word);
    if (ids.empty()) fail_usage("suppress: found an empty word");
    if (std::ranges::find(ids, tokenizer.unk_id()) != ids.end()) continue;  // it cannot come
    if (ids.size() == 1) {
      tokens.suppressed.push_back(ids.front());
    } else {
      tokens.suppressed_sequences.push_back(std::move(ids));
    }
  }
  return tokens;
}

}  // namespace attend
