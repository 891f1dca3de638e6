#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "attend/metrics/score.h"
#include "attend/metrics/significance.h"

namespace attend {

/// The scores of several systems: a row a system, a column a metric.
struct EvaluationTable {
  struct Column {
    std::string name;                   ///< of the metric
    std::string signature;              ///< with what was resampled
    std::vector<PairedResult> results;  ///< one a system
  };
  std::vector<std::string> systems;
  std::vector<Column> columns;
  std::string test;  ///< what the p-values come from, for a heading; empty where there are none
};

/// For people: aligned columns, p-values below 0.05 with a star, what they mean, signatures.
std::string to_text(const EvaluationTable& table, int width);

/// An array with an object a system, as sacreBLEU writes it: `system`, and for each metric an
/// object with `score`, `p_value`, `mean`, `ci` (null where there is none) and `signature`.
nlohmann::ordered_json to_json(const EvaluationTable& table);

}  // namespace attend
