#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/base/profile.h"
#include "attend/train/line_file.h"
#include "attend/train/progress.h"

namespace attend {

/// What happened in a run: `log.jsonl` for machines, a JSON object a line with an "event", and
/// `train.log`, the same lines that people see. Both grow over all parts of a resumed run. A full
/// disk is a warning: it must not end the training.
class RunLog {
 public:
  explicit RunLog(const Path& run);
  static Path jsonl(const Path& run) { return run / "log.jsonl"; }
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// A line of train.log that people have seen already.
  void note(const std::string& text);
  void write(const char* event, const nlohmann::ordered_json& fields);
  void progress(const TrainProgress& progress);
  void validation(const TrainingAmount& done, const ValidationScores& scores, bool best);
  void profile(const std::vector<ProfileRow>& rows);
  /// What ends the run; the caller tells people.
  void failure(const std::string& message);

 private:
  class TextSink;
  void warn_once(const LineFile& file, bool& warned) const;

  LineFile jsonl_;
  bool warned_jsonl_ = false;
  bool warned_text_ = false;
  std::shared_ptr<TextSink> text_;
};

}  // namespace attend
