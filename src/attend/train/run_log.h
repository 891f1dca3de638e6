#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attend/base/profile.h"
#include "attend/train/line_file.h"
#include "attend/train/progress.h"
#include "attend/train/tensorboard_log.h"

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

  /// From now on TensorBoard gets the figures, too, of what comes after so many updates. Throws
  /// Error where nothing can be written there.
  void open_tensorboard(const Path& folder, int64_t updates);
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
  void warn_once(const Path& path, int problem, bool& warned) const;

  LineFile jsonl_;
  bool warned_jsonl_ = false;
  bool warned_text_ = false;
  bool warned_tensorboard_ = false;
  std::unique_ptr<TensorboardLog> tensorboard_;
  std::shared_ptr<TextSink> text_;
};

}  // namespace attend
