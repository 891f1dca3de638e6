#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attend/cli/option_set.h"
#include "attend/search/translator.h"

namespace attend {

enum class OutputFormat { kText, kJson };

std::string_view name_of(OutputFormat format);

template <>
struct Choices<OutputFormat> {
  static constexpr OutputFormat kAll[] = {OutputFormat::kText, OutputFormat::kJson};
};

/// How a command writes its answers. docs/scoring.md describes the formats.
struct AnswerFormat {
  OutputFormat format = OutputFormat::kText;
  /// Adds --format, --token-scores, --alignments, --attention and --alignment-layer.
  void define(OptionSet& options, DetailOptions& details);
};

/// What stands between the fields of a line.
inline constexpr std::string_view kFieldSeparator = " ||| ";

/// The fields of the details asked for, each with a separator before it: scores of the tokens,
/// alignment, attention.
std::string detail_fields(const Alternative& answer, const DetailOptions& details);

/// A line of a text; with n_best above 1, lines "INDEX ||| TRANSLATION ||| SCORE". Each ends with
/// the fields of the details, and all but the last with '\n'.
std::string text_lines(int64_t index, const Translation& translation, bool numbered,
                       const DetailOptions& details);

/// One JSON object on a line: the best translation and, with `all`, the others as "alternatives".
std::string json_line(int64_t index, const Translation& translation, bool all,
                      const DetailOptions& details);

/// One JSON object on a line, for a given translation; `score` is what its "score" says.
std::string json_line(int64_t index, const Alternative& answer, double score,
                      const DetailOptions& details);

}  // namespace attend
