#include "attend/cli/evaluation_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attend/data/utf8.h"

namespace attend {

namespace {

std::string cell(const PairedResult& result, int width) {
  std::string text = fmt::format("{:.{}f}", result.value, width);
  if (result.confidence) {
    text += fmt::format(" ({:.{}f} ± {:.{}f})", result.confidence->mean, width,
                        result.confidence->half_width, width);
  }
  if (result.p_value) {
    text += fmt::format(" p = {:.4f}{}", *result.p_value, *result.p_value < 0.05 ? "*" : "");
  }
  return text;
}

using TextColumn = std::vector<std::string>;

/// The systems' names first; each with its heading on top.
std::vector<TextColumn> text_columns(const EvaluationTable& table, int width) {
  std::vector<TextColumn> columns(1);
  columns[0].push_back("System");
  for (size_t i = 0; i < table.systems.size(); ++i) {
    const bool is_baseline = i == 0 && !table.test.empty();
    columns[0].push_back((is_baseline ? "Baseline: " : "") + table.systems[i]);
  }
  for (const EvaluationTable::Column& of : table.columns) {
    TextColumn& column = columns.emplace_back();
    column.push_back(of.name + (of.results[0].confidence ? " (μ ± 95% CI)" : ""));
    for (const PairedResult& result : of.results) column.push_back(cell(result, width));
  }
  return columns;
}

/// Rows with two spaces between columns as wide as their widest cell.
std::string aligned(const std::vector<TextColumn>& columns) {
  std::vector<size_t> widths;
  for (const TextColumn& column : columns) {
    size_t widest = 0;
    for (const std::string& text : column) widest = std::max(widest, count_characters(text));
    widths.push_back(widest);
  }
  std::string rows;
  for (size_t row = 0; row < columns[0].size(); ++row) {
    for (size_t c = 0; c < columns.size(); ++c) {
      rows += columns[c][row];
      if (c + 1 < columns.size())
        rows.append(widths[c] + 2 - count_characters(columns[c][row]), ' ');
    }
    rows += '\n';
  }
  return rows;
}

}  // namespace

std::string to_text(const EvaluationTable& table, int width) {
  std::string text = aligned(text_columns(table, width)) + "\n";
  if (!table.test.empty()) {
    text += fmt::format(
        "{}. p: how probable a difference to the baseline at least as large\n"
        "would be if the two were equally good; * marks p < 0.05.\n\n",
        table.test);
  }
  for (const EvaluationTable::Column& column : table.columns) {
    text += column.name + "|" + column.signature + "\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const EvaluationTable& table) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (size_t i = 0; i < table.systems.size(); ++i) {
    nlohmann::ordered_json& system = array.emplace_back();
    system["system"] = table.systems[i];
    for (const EvaluationTable::Column& column : table.columns) {
      const PairedResult& result = column.results[i];
      nlohmann::ordered_json& of = system[column.name];
      of = {{"score", result.value}, {"p_value", nullptr}, {"mean", nullptr}, {"ci", nullptr}};
      if (result.p_value) of["p_value"] = *result.p_value;
      if (result.confidence) {
        of["mean"] = result.confidence->mean;
        of["ci"] = result.confidence->half_width;
      }
      of["signature"] = column.signature;
    }
  }
  return array;
}

}  // namespace attend
