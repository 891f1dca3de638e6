#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/report/report.h"
#include "attend/train/run_history.h"

namespace attend {

/// What was found amiss, for people to read on the page.
using Notes = std::vector<std::string>;

/// The log of the run in a folder. Throws Error where there is no folder or no log in it.
RunHistory history_of(const Path& run);

/// What a run's folder says without translating: its state, curves, recipe, data, model and
/// tokenizers. What is missing or damaged is told in `notes`.
nlohmann::ordered_json facts_of(const ReportedRun& run, const RunHistory& history, Notes& notes);

}  // namespace attend
