#include "attend/train/bench.h"

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
                "Of matrix products; auto is bfloat16 where the CPU has it");
    options.add("json", json_, "Print JSON for machines");
  }

  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    bench_.model.source_vocabulary_size = bench_.model.target_vocabulary_size = vocabulary_size_;
    bench_.model.validate();
    for (const char* name : {"pairs", "source_length", "target_length", "steps", "lanes"}) {
      const std::string value = options.find(name)->value_text();
      if (parse_count(value) < 1) fail_usage("{}: found {}, expected at least 1", name, value);
    }
    if (bench_.warmup < 0) fail_usage("warmup: found {}, expected at least 0", bench_.warmup);
    if (bench_.lanes > bench_.pairs) {
      fail_usage("lanes: found {}, expected at most pairs, which is {}", bench_.lanes,
                 bench_.pairs);
    }
  }

  void run(const OptionSet&) override {
    const TrainBenchResult result = bench_train(bench_);
    print(json_ ? to_json(bench_, result) + "\n" : format(bench_, result));
  }

 private:
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
