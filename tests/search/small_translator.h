#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "attend/search/translator.h"
#include "tests/data/test_files.h"
#include "tests/search/models.h"

namespace attend {

using Lines = std::vector<std::string>;

inline std::shared_ptr<const Tokenizer> tokenizer() {
  return {std::shared_ptr<const Tokenizer>(), &small_tokenizer()};
}

inline TransformerConfig translator_config(int64_t max_length = 128) {
  TransformerConfig config = search_config(small_tokenizer().vocabulary_size());
  config.max_length = max_length;
  return config;
}

inline TranslatorOptions options_of(int64_t workers, int64_t batch_tokens = 2048) {
  return {.search = {.max_extra_length = 5, .batch_tokens = batch_tokens}, .workers = workers};
}

inline Translator small_translator(const TranslatorOptions& options, int64_t max_length = 128,
                                   DType compute = DType::kFloat32) {
  return {random_model(translator_config(max_length), compute, 3), tokenizer(), tokenizer(),
          options};
}

inline Lines texts_of(const std::vector<Translation>& translations) {
  Lines texts;
  for (const Translation& translation : translations) texts.push_back(translation.text());
  return texts;
}

inline Lines stream(const Translator& translator, const std::string& bytes,
                    TranslationCounts* counts = nullptr) {
  std::istringstream input(bytes);
  LineReader reader(input, "the input");
  Lines texts;
  const TranslationCounts found = translator.translate_stream(
      reader, [&](const Translation& translation) { texts.push_back(translation.text()); });
  if (counts != nullptr) *counts = found;
  return texts;
}

}  // namespace attend
