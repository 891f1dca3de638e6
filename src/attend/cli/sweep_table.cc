#include "attend/cli/sweep_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attend/data/text.h"
#include "attend/data/utf8.h"
#include "attend/train/run_folder.h"
#include "attend/train/run_history.h"
#include "attend/train/run_log.h"

namespace attend {
namespace {

struct Column {
  const char* heading;
  std::string SweepFigures::*figure;
  bool is_number;
};

constexpr std::array kColumns = {Column{"row", &SweepFigures::name, false},
                                 Column{"what differs", &SweepFigures::differs, false},
                                 Column{"weights", &SweepFigures::weights, true},
                                 Column{"perplexity", &SweepFigures::perplexity, true},
                                 Column{"BLEU", &SweepFigures::bleu, true},
                                 Column{"test BLEU", &SweepFigures::test_bleu, true},
                                 Column{"time", &SweepFigures::time, true},
                                 Column{"tokens/s", &SweepFigures::tokens_per_second, true},
                                 Column{"state", &SweepFigures::state, false}};

std::vector<Column> columns_of(const std::vector<SweepFigures>& rows) {
  std::vector<Column> columns;
  for (const Column& column : kColumns) {
    const bool used = std::any_of(rows.begin(), rows.end(), [&](const SweepFigures& row) {
      return !(row.*column.figure).empty();
    });
    if (used) columns.push_back(column);
  }
  return columns;
}

/// `line` gives a row of cells as text; `cell` its cells.
std::string lines_of(const std::vector<SweepFigures>& rows, const std::vector<Column>& columns,
                     const std::function<std::string(const std::vector<std::string>&)>& line) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.emplace_back(column.heading);
  std::string text = line(cells);
  for (const SweepFigures& row : rows) {
    cells.clear();
    for (const Column& column : columns) cells.push_back(row.*column.figure);
    text += line(cells);
  }
  return text;
}

std::string joined(const std::vector<std::string>& cells, std::string_view between) {
  std::string text;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) text += between;
    text += cell;
  }
  return text;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ' ');
  return text;
}

/// What other work on the machine slowed down for a while does not count.
std::string median_speed(const RunHistory& history) {
  std::vector<double> speeds;
  for (const auto& entry : history.training) {
    if (std::isfinite(entry.progress.tokens_per_second)) {
      speeds.push_back(entry.progress.tokens_per_second);
    }
  }
  if (speeds.empty()) return "";
  const auto middle = speeds.begin() + std::ssize(speeds) / 2;
  std::nth_element(speeds.begin(), middle, speeds.end());
  return fmt::format("{:.0f}", *middle);
}

/// The log has no figures that are not finite. A perplexity that is none of a loss that is one is
/// too large.
std::string perplexity_text(const ValidationScores& scores) {
  if (std::isfinite(scores.perplexity)) return fmt::format("{:.2f}", scores.perplexity);
  return std::isnan(scores.loss) ? "nan" : "inf";
}

}  // namespace

std::string failed_text(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::replace(message.begin(), message.end(), '\t', ' ');
  return "failed: " + message;
}

SweepFigures figures_of_run(const Path& run, const TestText& test) {
  SweepFigures figures{.state = "not begun"};
  std::error_code error;
  if (!std::filesystem::exists(RunLog::jsonl(run), error)) return figures;
  LineReader reader(RunLog::jsonl(run).string());
  const RunHistory history = read_history([&](std::string& line) { return reader.next(line); });
  const std::optional<RunState> state = state_of_run(run);
  if (history.weights > 0) figures.weights = grouped(history.weights);
  const auto* chosen = history.best_validation();
  if (chosen == nullptr && !history.validations.empty()) chosen = &history.validations.back();
  const bool diverged = chosen != nullptr && !std::isfinite(chosen->scores.perplexity);
  if (chosen != nullptr) {
    figures.perplexity = perplexity_text(chosen->scores);
    if (chosen->scores.bleu) figures.bleu = fmt::format("{:.2f}", *chosen->scores.bleu);
  }
  figures.tokens_per_second = median_speed(history);
  if (const auto bleu = recorded_test_bleu(run, test)) {
    figures.test_bleu = fmt::format("{:.2f}", *bleu);
  }
  figures.state = "before its first checkpoint";
  if (state) {
    figures.time = time_text(state->done.seconds);
    figures.state =
        state->finished.empty() ? fmt::format("after {} updates", state->done.updates) : "";
  }
  if (diverged) figures.state = "diverged" + (figures.state.empty() ? "" : ", " + figures.state);
  if (!history.error.empty()) figures.state = failed_text(history.error);
  return figures;
}

std::string aligned_table(const std::vector<SweepFigures>& rows) {
  const std::vector<Column> columns = columns_of(rows);
  std::vector<std::size_t> widths(columns.size());
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], count_characters(cells[i]));
    }
    return std::string();
  };
  lines_of(rows, columns, measure);
  return lines_of(rows, columns, [&](std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - count_characters(cells[i]), ' ');
      cells[i] = columns[i].is_number ? padding + cells[i] : cells[i] + padding;
    }
    std::string line = joined(cells, "  ");
    return line.erase(line.find_last_not_of(' ') + 1) + "\n";
  });
}

std::string markdown_table(const std::vector<SweepFigures>& rows) {
  const std::vector<Column> columns = columns_of(rows);
  std::string rule = "|";
  for (const Column& column : columns) rule += column.is_number ? "---:|" : "---|";
  rule += "\n";
  return lines_of(rows, columns, [&](std::vector<std::string> cells) {
    for (std::string& cell : cells) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) {
        cell.insert(at, 1, '\\');
      }
    }
    return "| " + joined(cells, " | ") + " |\n" + std::exchange(rule, "");
  });
}

std::string tsv_table(const std::vector<SweepFigures>& rows) {
  return lines_of(rows, columns_of(rows),
                  [](const std::vector<std::string>& cells) { return joined(cells, "\t") + "\n"; });
}

}  // namespace attend
