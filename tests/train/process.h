#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attend/train/options.h"
#include "tests/io/support.h"

namespace attend {

/// The command `attend`, or another, at work; killed where it still is at the end.
class Process {
 public:
  /// stdout and stderr go to files in `folder`.
  Process(const std::vector<std::string>& arguments, const Path& folder,
          const char* program = ATTEND_COMMAND)
      : out_(folder / "stdout"), err_(folder / "stderr") {
    std::vector<char*> argv{const_cast<char*>(program)};
    for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ != 0) return;
    for (const auto& [path, to] :
         {std::pair(&out_, STDOUT_FILENO), std::pair(&err_, STDERR_FILENO)}) {
      dup2(open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), to);
    }
    execvp(program, argv.data());
    _exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (child_ <= 0) return;
    signal(SIGKILL);
    wait();
  }

  void signal(int number) const { kill(child_, number); }
  /// The exit status; 128 + N where signal N ended it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// False where the process ended, or a minute went by, before `condition` came true.
  bool wait_until(const std::function<bool()>& condition) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid != 0 || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  std::string out() const { return get(out_); }
  std::string err() const { return get(err_); }

 private:
  Path out_, err_;
  pid_t child_ = -1;
};

/// What became of a process.
struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

inline Finished run_attend_command(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  Process process(arguments, folder.path());
  const int status = process.wait();
  return {status, process.out(), process.err()};
}

/// The call of `attend train` with the options that these tests set.
inline std::vector<std::string> train_arguments(const TrainOptions& options) {
  std::vector<std::string> arguments = {"train"};
  const auto add = [&](const char* flag, const auto& value) {
    arguments.push_back(flag);
    arguments.push_back(fmt::format("{}", value));
  };
  for (const std::string& file : options.train_source) add("--train-source", file);
  for (const std::string& file : options.train_target) add("--train-target", file);
  for (const double weight : options.corpus_weights) add("--corpus-weights", weight);
  if (!options.valid_source.empty()) add("--valid-source", options.valid_source);
  if (!options.valid_target.empty()) add("--valid-target", options.valid_target);
  if (!options.tokenizer.empty()) add("--tokenizer", options.tokenizer);
  add("--vocabulary-size", options.vocabulary_size);
  add("--preset", options.preset);
  add("--layers", options.model.encoder_layers);
  add("--d-model", options.model.d_model);
  add("--d-ff", options.model.d_ff);
  add("--heads", options.model.heads);
  add("--dropout", options.model.dropout);
  add("--batch-tokens", options.batch_tokens);
  add("--lane-tokens", options.lane_tokens);
  add("--max-length", options.max_length);
  add("--memory", to_string(options.memory));
  add("--accumulate", options.accumulate);
  add("--warmup", options.warmup);
  add("--learning-rate", options.learning_rate);
  add("--ema", options.ema);
  add("--r-drop", options.regularization.r_drop);
  add("--layer-drop", options.regularization.layer_drop);
  add("--source-bpe-dropout", options.source_bpe_dropout);
  add("--target-bpe-dropout", options.target_bpe_dropout);
  add("--source-word-dropout", options.regularization.source_word_dropout);
  add("--target-word-dropout", options.regularization.target_word_dropout);
  add("--stop-after", to_string(options.stop_after));
  add("--validate-every", to_string(options.validate_every));
  add("--validation-metric", name_of(options.validation_metric));
  add("--checkpoint-every", to_string(options.checkpoint_every));
  add("--keep-last", options.keep_last);
  add("--average-last", options.average_last);
  add("--patience", options.patience);
  add("--log-every", options.log_every);
  add("--workers", options.workers);
  add("--run", options.run);
  return arguments;
}

}  // namespace attend
