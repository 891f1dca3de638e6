#include "attend/cli/answer_format.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

/// Six digits after the point, as in text; null where there is no finite number.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  constexpr double kScale = 1e6;
  return std::round(value * kScale) / kScale;
}

Json numbers(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(number(static_cast<double>(value)));
  return list;
}

void add(const Alternative& answer, double score, const DetailOptions& details, Json& object) {
  object["text"] = answer.text;
  object["score"] = number(score);
  object["log_prob"] = number(answer.log_prob);
  if (details.tokens || details.attention) object["tokens"] = answer.target_pieces;
  if (details.tokens) object["token_scores"] = numbers(answer.token_log_probs);
  if (details.alignments) {
    Json& links = object["alignments"] = Json::array();
    for (const WordLink& link : answer.alignment) links.push_back({link.source, link.target});
  }
  if (!details.attention) return;
  object["source_tokens"] = answer.source_pieces;
  Json& rows = object["attention"] = Json::array();
  for (const std::vector<float>& row : answer.attention) rows.push_back(numbers(row));
}

std::string dump(const Json& object) {
  // Pieces of a tokenizer made elsewhere may be no UTF-8.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string joined(const std::vector<float>& values, std::string_view separator) {
  std::string text;
  for (const float value : values) {
    if (!text.empty()) text += separator;
    text += fmt::format("{:.6f}", value);
  }
  return text;
}

}  // namespace

std::string_view name_of(OutputFormat format) {
  return format == OutputFormat::kJson ? "json" : "text";
}

void AnswerFormat::define(OptionSet& options, DetailOptions& details) {
  options.group("Output");
  options.add("format", format, "Text, or a JSON object a line");
  options.add("token_scores", details.tokens, "Add log P of each token");
  options.add("alignments", details.alignments,
              "Add which words belong together (Pharaoh: 0-0 1-2)");
  options.add("attention", details.attention, "Add the decoder's attention to the source");
  options.add("alignment_layer", details.alignment_layer,
              "The decoder layer that both come from, from 1; 0 is the last but one");
}

std::string detail_fields(const Alternative& answer, const DetailOptions& details) {
  std::string fields;
  if (details.tokens) fields.append(kFieldSeparator).append(joined(answer.token_log_probs, " "));
  if (details.alignments) {
    fields += kFieldSeparator;
    for (const WordLink& link : answer.alignment) {
      if (&link != &answer.alignment.front()) fields += ' ';
      fields += fmt::format("{}-{}", link.source, link.target);
    }
  }
  if (details.attention) {
    fields += kFieldSeparator;
    for (const std::vector<float>& row : answer.attention) {
      if (&row != &answer.attention.front()) fields += ' ';
      fields += joined(row, ",");
    }
  }
  return fields;
}

std::string text_lines(int64_t index, const Translation& translation, bool numbered,
                       const DetailOptions& details) {
  const Alternative& best = translation.alternatives.front();
  if (!numbered) return best.text + detail_fields(best, details);
  std::string lines;
  for (const Alternative& each : translation.alternatives) {
    if (&each != &best) lines += '\n';
    lines += fmt::format("{0}{1}{2}{1}{3:.6f}", index, kFieldSeparator, each.text, each.score);
    lines += detail_fields(each, details);
  }
  return lines;
}

std::string json_line(int64_t index, const Translation& translation, bool all,
                      const DetailOptions& details) {
  const Alternative& best = translation.alternatives.front();
  Json object{{"index", index}};
  add(best, best.score, details, object);
  if (!all) return dump(object);
  Json& others = object["alternatives"] = Json::array();
  for (const Alternative& each : translation.alternatives) {
    if (&each == &best) continue;
    Json other = Json::object();
    add(each, each.score, details, other);
    others.push_back(std::move(other));
  }
  return dump(object);
}

std::string json_line(int64_t index, const Alternative& answer, double score,
                      const DetailOptions& details) {
  Json object{{"index", index}};
  add(answer, score, details, object);
  return dump(object);
}

}  // namespace attend
