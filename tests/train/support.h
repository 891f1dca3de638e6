#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "attend/base/log.h"
#include "attend/base/random.h"
#include "attend/data/tokenizer.h"
#include "attend/io/checkpoint.h"
#include "attend/train/trainer.h"
#include "tests/io/support.h"

namespace attend {

/// What is logged during its life.
class CapturedLog {
 public:
  CapturedLog() : before_(logger().sinks()) {
    logger().sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_)};
    logger().sinks().front()->set_pattern("%v");
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { logger().sinks() = before_; }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::vector<spdlog::sink_ptr> before_;
};

/// Sentences of a few words each.
inline std::string sentences(int64_t count, uint64_t seed) {
  static const std::vector<std::string> kWords = {"one", "two", "three", "four",  "five", "six",
                                                  "red", "dog", "house", "green", "runs", "old"};
  RandomGenerator random(seed);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    for (uint64_t n = 2 + random.uniform_index(6); n > 0; --n) {
      text += kWords[random.uniform_index(kWords.size())] + (n > 1 ? " " : "");
    }
    text += '\n';
  }
  return text;
}

inline std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// A small corpus, whose second language is spelled in capitals, a tokenizer, and a place for runs.
class TrainingFolder {
 public:
  static constexpr int64_t kPairs = 200;

  TrainingFolder() {
    const std::string text = sentences(kPairs, 1), valid = sentences(20, 2);
    put(file("train.a"), text);
    put(file("train.b"), in_capitals(text));
    put(file("valid.a"), valid);
    put(file("valid.b"), in_capitals(valid));
    put(file("tokenizer"), tokenizer().serialized());
  }

  Path file(const std::string& name) const { return folder_ / name; }
  const Path& path() const { return folder_.path(); }

  /// A run of 30 updates, about two epochs, with a checkpoint every 10.
  TrainOptions options(const std::string& run_name) const {
    TrainOptions options;
    options.train_source = {file("train.a")};
    options.train_target = {file("train.b")};
    options.tokenizer = file("tokenizer");
    options.model = preset("tiny");
    options.model.encoder_layers = options.model.decoder_layers = 1;
    options.model.d_model = 16;
    options.model.d_ff = 32;
    options.model.heads = 2;
    options.model.dropout = 0.1F;
    options.preset = "tiny";
    options.batch_tokens = 150;
    options.warmup = 10;
    options.learning_rate = 5e-3;
    options.run = file(run_name);
    options.stop_after = {.updates = 30};
    options.checkpoint_every = {.updates = 10};
    options.log_every = 5;
    options.workers = 1;
    return options;
  }

  /// The same with validation every 6 updates.
  TrainOptions validated(const std::string& run_name) const {
    TrainOptions made = options(run_name);
    made.valid_source = file("valid.a");
    made.valid_target = file("valid.b");
    made.validate_every = {.updates = 6};
    made.validation_metric = ValidationMetric::kLoss;
    return made;
  }

  /// The same, and the more it learns the worse it is at what it is validated on, which has the
  /// words that are no training target: the first validation is the best.
  TrainOptions worsening(const std::string& run_name) const {
    TrainOptions made = validated(run_name);
    made.valid_target = made.valid_source;
    made.validate_every = {.updates = 4};
    made.learning_rate = 0.03;
    return made;
  }

 private:
  static const Tokenizer& tokenizer() {
    static const Tokenizer made = [] {
      std::istringstream lines(sentences(300, 3) + in_capitals(sentences(300, 4)));
      return Tokenizer::train({.vocabulary_size = 330}, [&](std::string& line) {
        return static_cast<bool>(std::getline(lines, line));
      });
    }();
    return made;
  }

  TemporaryFolder folder_;
};

inline std::string model_of(const Path& run) { return get(run / "model.safetensors"); }
inline std::string model_of(const TrainOptions& options) { return model_of(Path(options.run)); }

/// The model of a straight run elsewhere with the same options.
inline std::string straight_model(TrainOptions options) {
  options.run += "-straight";
  train(options);
  return model_of(options);
}

inline void truncate_by_half(const Path& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}

inline std::vector<int64_t> checkpoints_of(const TrainOptions& options) {
  std::vector<int64_t> steps;
  for (const CheckpointFile& each : list_checkpoints(options.run)) steps.push_back(each.step);
  return steps;
}

/// Trains until the hook stops it after `update`, or to the end where it is 0.
inline TrainResult train_until(const TrainOptions& options, int64_t update = 0) {
  std::atomic<bool> stop = false;
  TrainHooks hooks;
  hooks.stop = &stop;
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates == update) stop = true;
  };
  return train(options, hooks);
}

/// The events of log.jsonl; fails the test for a line that is no JSON.
inline std::vector<nlohmann::json> events_of(const Path& run, const std::string& kind = "") {
  std::istringstream lines(get(run / "log.jsonl"));
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(event.is_object()) << line;
    if (!event.is_object()) continue;
    if (kind.empty() || event.at("event") == kind) events.push_back(std::move(event));
  }
  return events;
}

}  // namespace attend
