#include "attend/train/bench.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/cli/train_options.h"

namespace attend {
namespace {

class BenchTrainCommand : public Command {
 public:
  std::string_view name() const override { return "bench train"; }
  std::string_view summary() const override {
    return "Measure training steps on random tokens: speed, arithmetic, memory, time by op";
  }
  std::string_view details() const override {
    return "Utilisation is the arithmetic of a step, counted from the model, over its time and "
           "over the rate of\nthe matrix library on as many cores, measured in the same process. "
           "The preset sets batch and\nvocabulary as well: tiny 10000 tokens and 128 pairs of 16 "
           "+ 16, the others 32000 and 32 pairs of\n32 + 32.";
  }

  void define(OptionSet& options) override {
    define_model_options(options, bench_.preset, bench_.model).then([this] {
      const TrainBenchOptions defaults = train_bench_options(bench_.preset);
      bench_.pairs = defaults.pairs;
      bench_.source_length = defaults.source_length;
      bench_.target_length = defaults.target_length;
      vocabulary_size_ = defaults.model.source_vocabulary_size;
    });
    options.add("vocabulary_size", vocabulary_size_, "Tokens of either side");
    options.group("Steps");
    options.add("pairs", bench_.pairs, "Pairs a step");
    options.add("source_length", bench_.source_length, "Tokens of each source sentence");
    options.add("target_length", bench_.target_length, "Tokens of each target sentence");
    options.add("warmup", bench_.warmup, "Steps that are not measured, before the others");
    options.add("steps", bench_.steps, "Steps that are measured");
    options.add("lanes", bench_.lanes, "Parts of a step");
    options.add("workers", bench_.workers, "Threads; 0 is one a core");
    options.add("precision", bench_.precision,
                "Of matrix products; auto is bfloat16 where that is faster");
    options.add("json", json_, "Print JSON for machines");
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    bench_.model.source_vocabulary_size = bench_.model.target_vocabulary_size = vocabulary_size_;
    bench_.model.validate();
    check_bounds();
  }

  void run(const OptionSet&) override {
    const TrainBenchResult result = bench_train(bench_);
    print(json_ ? to_json(bench_, result) + "\n" : format(bench_, result));
  }

 private:
  void check_bounds() const {
    constexpr int64_t kLeastVocabulary = 4;  // three tokens are special
    constexpr int64_t kMostSteps = 1'000'000;
    constexpr int64_t kMostTokens = 10'000'000;
    const auto within = [](const char* name, int64_t value, int64_t least, int64_t most) {
      if (value < least || value > most) {
        fail_usage("{}: found {}, expected from {} to {}", name, value, least, most);
      }
    };
    within("vocabulary_size", vocabulary_size_, kLeastVocabulary, kMostTokens);
    within("source_length", bench_.source_length, 1, bench_.model.max_length);
    within("target_length", bench_.target_length, 1, bench_.model.max_length);
    within("pairs", bench_.pairs, 1,
           std::max<int64_t>(1, kMostTokens / (bench_.source_length + bench_.target_length)));
    within("steps", bench_.steps, 1, kMostSteps);
    within("warmup", bench_.warmup, 0, kMostSteps);
    within("lanes", bench_.lanes, 1, bench_.pairs);
  }

  TrainBenchOptions bench_ = train_bench_options("tiny");
  int64_t vocabulary_size_ = bench_.model.source_vocabulary_size;
  bool json_ = false;
};

class BenchKernelsCommand : public Command {
 public:
  std::string_view name() const override { return "bench kernels"; }
  std::string_view summary() const override {
    return "Measure the rates of the matrix library on this machine";
  }
  void define(OptionSet&) override {}
  void run(const OptionSet&) override { print(bench_kernels()); }
};

}  // namespace

std::unique_ptr<Command> make_bench_train_command() {
  return std::make_unique<BenchTrainCommand>();
}
std::unique_ptr<Command> make_bench_kernels_command() {
  return std::make_unique<BenchKernelsCommand>();
}

}  // namespace attend
