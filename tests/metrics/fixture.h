#pragma once

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "attend/metrics/bleu.h"
#include "attend/metrics/chrf.h"
#include "attend/metrics/ter.h"

namespace attend {

/// What sacreBLEU answers; tests/reference/metrics_fixture.py wrote it.
inline nlohmann::json read_fixture(const std::string& name) {
  std::ifstream file(std::string(ATTEND_SOURCE_DIR) + "/tests/metrics/" + name);
  return nlohmann::json::parse(file);
}

/// The SentencePiece model of those fixtures.
inline const std::string kPiecesModel = ATTEND_SOURCE_DIR "/tests/metrics/pieces.model";

inline bool takes_pieces(const std::string& tokenizer) {
  return tokenizer == "spm" || tokenizer.starts_with("flores") || tokenizer == "spBLEU-1K";
}

inline BleuOptions bleu_options(const nlohmann::json& given) {
  BleuOptions options;
  const std::string tokenizer = given.value("tokenize", "13a");
  options.tokenizer = parse_bleu_tokenizer(tokenizer);
  if (takes_pieces(tokenizer)) options.tokenizer_model = kPiecesModel;
  options.lowercase = given.value("lowercase", false);
  options.smoothing = parse_bleu_smoothing(given.value("smooth_method", "exp"));
  if (given.contains("smooth_value")) options.smooth_value = given["smooth_value"].get<double>();
  // sacreBLEU's programming interface has no default of its own for sentences.
  options.effective_order = given.value("effective_order", false);
  options.max_ngram_order = given.value("max_ngram_order", options.max_ngram_order);
  return options;
}

inline ChrfOptions chrf_options(const nlohmann::json& given) {
  ChrfOptions options;
  options.char_order = given.value("char_order", options.char_order);
  options.word_order = given.value("word_order", options.word_order);
  options.beta = given.value("beta", options.beta);
  options.lowercase = given.value("lowercase", false);
  options.whitespace = given.value("whitespace", false);
  options.eps_smoothing = given.value("eps_smoothing", false);
  return options;
}

inline TerOptions ter_options(const nlohmann::json& given) {
  TerOptions options;
  options.case_sensitive = given.value("case_sensitive", false);
  options.normalized = given.value("normalized", false);
  options.no_punct = given.value("no_punct", false);
  options.asian_support = given.value("asian_support", false);
  return options;
}

/// Reference sets in which null is a missing reference.
inline References references_from(const nlohmann::json& sets) {
  References references;
  for (const nlohmann::json& set : sets) {
    Lines& lines = references.emplace_back();
    for (const nlohmann::json& line : set) {
      lines.push_back(line.is_null() ? std::string(kNoReference) : line.get<std::string>());
    }
  }
  return references;
}

/// A signature as sacreBLEU's without its version: attend's own fields, version and order, end it.
inline std::string without_version(const std::string& signature) {
  const size_t order = signature.find("|order:");
  return signature.substr(0, std::min(order, signature.rfind("|version:")));
}

}  // namespace attend
