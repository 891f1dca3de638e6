#include "attend/io/average.h"

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"

namespace attend {
namespace {

class AverageCommand : public Command {
 public:
  std::string_view name() const override { return "average"; }
  std::string_view summary() const override {
    return "Average the weights of several models or checkpoints into a new model folder";
  }
  std::string_view details() const override {
    return "Examples\n"
           "  attend average --run runs/m30k --last 5 --output averaged\n"
           "  attend average --output averaged model1 model2";
  }
  void define(OptionSet& options) override {
    options.add("models", models_, "Model or run folders, weights files or checkpoints")
        .positional()
        .metavar("PATH");
    options.add("run", run_, "A run folder whose last checkpoints are averaged").metavar("DIR");
    options.add("last", last_, "How many of them");
    options.add("output", output_, "The model folder to write").metavar("DIR");
  }
  void require() const override;
  void run(const OptionSet&) override;

 private:
  std::vector<Path> paths() const;
  /// The folder that has configuration and tokenizer of a path.
  static Path home_of(const Path& path);
  static ModelFiles home_files(const Path& path);

  std::vector<std::string> models_;
  std::string run_;
  int64_t last_ = 5;
  std::string output_;
};

void AverageCommand::require() const {
  if (models_.empty() == run_.empty()) {
    fail_usage("expected either --run DIR or the models to average");
  }
  if (last_ < 1) fail_usage("last: found {}, expected a whole number of at least 1", last_);
  if (output_.empty()) fail_usage("--output DIR is missing: the model folder to write");
  if (!files_of_model(output_).empty()) {
    fail_usage("output: {} holds a model or a run already; choose another --output", output_);
  }
}

std::vector<Path> AverageCommand::paths() const {
  if (run_.empty()) return {models_.begin(), models_.end()};
  std::error_code error;
  if (!std::filesystem::is_directory(run_, error)) {
    fail("run: there is no folder {}; expected the folder of a run", run_);
  }
  const std::vector<CheckpointFile> checkpoints = list_checkpoints(run_);
  if (static_cast<int64_t>(checkpoints.size()) < last_) {
    fail("{} has {}, expected at least {} (--last)", run_,
         counted(static_cast<int64_t>(checkpoints.size()), "checkpoint"), last_);
  }
  std::vector<Path> chosen;
  for (auto each = checkpoints.end() - last_; each != checkpoints.end(); ++each) {
    chosen.push_back(each->path);
  }
  return chosen;
}

Path AverageCommand::home_of(const Path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return path;
  const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
  return folder.filename() == "checkpoints" ? folder / ".." : folder;
}

ModelFiles AverageCommand::home_files(const Path& path) {
  const Path home = home_of(path);
  if (home == path) return load_model_directory(home);
  SafetensorsFile::open(path);  // what is wrong with the argument itself is told as that
  try {
    return load_model_directory(home);
  } catch (const Error& error) {
    fail("{}: the configuration and tokenizers beside it cannot be used: {}", path.string(),
         error.what());
  }
}

void AverageCommand::run(const OptionSet&) {
  const std::vector<Path> inputs = paths();
  const ModelFiles first = home_files(inputs[0]);
  save_new_model_directory(output_, first, average_models(inputs));
  logger().info("{}: the average of {}", output_,
                counted(static_cast<int64_t>(inputs.size()), "model"));
}

}  // namespace

std::unique_ptr<Command> make_average_command() { return std::make_unique<AverageCommand>(); }

}  // namespace attend
