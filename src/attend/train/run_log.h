#pragma once

#include <fstream>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/sinks/sink.h>

#include "attend/io/files.h"
#include "attend/train/trainer.h"

namespace attend {

/// What happened in a run: `log.jsonl` for machines, a JSON object a line with an "event", and
/// `train.log`, the same lines that people see. Both grow over all parts of a resumed run. A full
/// disk is a warning: it must not end the training.
class RunLog {
 public:
  explicit RunLog(const Path& run);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void write(const char* event, nlohmann::ordered_json fields);
  void progress(const TrainProgress& progress);
  void validation(const TrainingAmount& done, const ValidationScores& scores, bool best);

 private:
  Path path_;
  std::ofstream jsonl_;
  bool warned_ = false;
  std::shared_ptr<spdlog::sinks::sink> text_;
};

}  // namespace attend
