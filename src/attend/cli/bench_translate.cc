#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "attend/base/error.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/cli/translator_options.h"
#include "attend/data/text.h"
#include "attend/search/bench.h"
#include "attend/train/bench.h"

namespace attend {
namespace {

class BenchTranslateCommand : public Command {
 public:
  std::string_view name() const override { return "bench translate"; }
  std::string_view summary() const override {
    return "Measure how fast a model translates a text: throughput, latency, memory, time by op";
  }
  std::string_view details() const override {
    return "The text is translated whole once to warm up and then --repetitions times, then line "
           "by line, each\nwhen the one before is done. Reading the text and loading the model do "
           "not count.";
  }

  void define(OptionSet& options) override {
    options.group("Text");
    options.add("model", model_, "A model folder, or the folder of a run")
        .positional()
        .metavar("DIR");
    options.add("input", input_, "Text to translate; .gz or not; - is standard input")
        .metavar("FILE");
    options.add("copies", bench_.copies, "How often over the text is translated at once");
    options.add("repetitions", bench_.repetitions, "Of which the median counts");
    options.add("singles", bench_.singles, "Lines that are also translated one by one, at most");
    options.add("starts", starts_,
                "Processes that are started to see how soon they have translated the first line");
    define_translator_options(options, bench_.translator);
    options.add("json", json_, "Print JSON for machines");
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    bench_.validate();
    constexpr int64_t kMostStarts = 1000;
    if (starts_ < 0 || starts_ > kMostStarts) {
      fail_usage("starts: found {}, expected from 0 to {}", starts_, kMostStarts);
    }
  }

  void require() const override {
    if (model_.empty()) {
      fail_usage("--model DIR is missing: a model folder, or the folder of a run");
    }
  }

  void run(const OptionSet&) override {
    TranslateBenchOptions settings = bench_;
    settings.translator.workers = resolve_workers(bench_.translator.workers);
    settings.translator.search.scores = false;  // as `attend translate`, which prints none
    const std::vector<std::string> lines = read_lines(input_);
    TranslateBenchResult result = bench_translate(model_, lines, settings);
    result.starts = time_starts(lines.front());
    print(json_ ? to_json(result) + "\n" : format(result));
  }

 private:
  std::vector<double> time_starts(const std::string& line) const;

  std::string model_;
  std::string input_ = "-";
  TranslateBenchOptions bench_;
  int64_t starts_ = 10;
  bool json_ = false;
};

/// Seconds from the start of `attend translate` to the end of its answer to one line.
double time_start(const std::vector<std::string>& arguments, const std::string& line) {
  std::vector<char*> argv;
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
    fail("cannot make a pipe: {}", std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (failed != 0) fail("cannot start attend translate: {}", std::strerror(failed));
  const std::string text = line + "\n";
  const bool written = write(in[1], text.data(), text.size()) == std::ssize(text);
  close(in[1]);
  char last = 0;
  while (last != '\n' && read(out[0], &last, 1) == 1) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!written || last != '\n' || status != 0) fail("attend translate did not answer a line");
  return passed.count();
}

std::vector<double> BenchTranslateCommand::time_starts(const std::string& line) const {
  std::vector<std::string> arguments = {"attend",
                                        "translate",
                                        "--model",
                                        model_,
                                        "--workers",
                                        "1",
                                        "--quiet",
                                        "--beam-size",
                                        std::to_string(bench_.translator.search.beam_size),
                                        "--precision",
                                        std::string(name_of(bench_.translator.precision))};
  if (const std::string& shortlist = bench_.translator.shortlist; !shortlist.empty()) {
    arguments.insert(arguments.end(), {"--shortlist", shortlist});
  }
  std::vector<double> starts;
  for (int64_t i = 0; i < starts_; ++i) starts.push_back(time_start(arguments, line));
  std::sort(starts.begin(), starts.end());
  return starts;
}

}  // namespace

std::unique_ptr<Command> make_bench_translate_command() {
  return std::make_unique<BenchTranslateCommand>();
}

}  // namespace attend
