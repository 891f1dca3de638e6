#include "attend/train/trainer.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "attend/io/model_directory.h"
#include "tests/train/process.h"
#include "tests/train/support.h"

namespace attend {
namespace {

/// Expects that the model in the root has the weights, under `prefix`, of a checkpoint.
void expect_root_is(const TrainOptions& options, int64_t step, std::string_view prefix) {
  const SafetensorsFile root = SafetensorsFile::open(Path(options.run) / kWeightsFile);
  const SafetensorsFile checkpoint = SafetensorsFile::open(checkpoint_path(options.run, step));
  ASSERT_GT(root.names().size(), 10U);
  for (const std::string& name : root.names()) {
    EXPECT_EQ(root.read(name).to_vector(), checkpoint.read(std::string(prefix) + name).to_vector())
        << name << ", step " << step;
  }
}

TEST(Trainer, TheRootHoldsTheLastModelWithoutValidation) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  const TrainResult result = train(options);
  EXPECT_EQ(result.done.updates, 30);
  EXPECT_EQ(result.finished, "stop_after 30u reached");
  EXPECT_FALSE(result.already_finished);
  expect_root_is(options, 30, kWeightsPrefix);
  const ModelFiles files = load_model_directory(options.run);
  EXPECT_EQ(files.config.d_model, 16);
  EXPECT_EQ(files.source_tokenizer, files.target_tokenizer);
}

TEST(Trainer, SaysWhereTheTimeWentAndHowMuchMemoryItTook) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.profile = true;
  const CapturedLog log;
  train(options);
  EXPECT_NE(log.text().find("where the time of 1 worker went in "), std::string::npos);
  const auto profiles = events_of(options.run, "profile");
  ASSERT_EQ(profiles.size(), 1U);
  std::map<std::string, nlohmann::json> by_op;
  for (const auto& op : profiles[0].at("ops")) by_op[op.at("op")] = op;
  EXPECT_EQ(by_op["adam"].at("calls"), 30);  // one chunk an update
  EXPECT_GT(by_op["adam"].at("bytes"), 0);
  EXPECT_GT(by_op["adam"].at("seconds"), 0);
  for (const auto& event : events_of(options.run, "train")) {
    EXPECT_GT(event.at("peak_resident_bytes"), 1 << 20);
  }
}

TEST(Trainer, TheRootHoldsTheMovingAverageWhereThereIsOne) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.ema = 0.9;
  train(options);
  expect_root_is(options, 30, kAveragePrefix);
}

TEST(Trainer, TheRootHoldsTheBestAndTheBestCheckpointIsKept) {
  const TrainingFolder folder;
  TrainOptions options = folder.worsening("run");
  options.stop_after = {.updates = 60};
  options.checkpoint_every = options.validate_every;
  options.keep_last = 2;
  const TrainResult result = train(options);
  double best = -1e9;
  int64_t best_update = 0;
  for (const auto& event : events_of(options.run, "validation")) {
    if (-event.at("loss").get<double>() > best) {
      best = -event.at("loss").get<double>();
      best_update = event.at("update");
    }
  }
  ASSERT_LT(best_update, 56) << "the test wants a best model that is not among the last";
  EXPECT_EQ(result.best_update, best_update);
  EXPECT_EQ(result.best_criterion, best);
  expect_root_is(options, best_update, kWeightsPrefix);
  EXPECT_EQ(checkpoints_of(options), (std::vector<int64_t>{best_update, 56, 60}));
}

TEST(Trainer, OfEqualScoresTheLowerLossIsTheBestAndPatienceGoesOn) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.validation_metric = ValidationMetric::kBleu;
  options.schedule = Schedule::kConstant;
  options.warmup = 0;
  options.learning_rate = 1e-5;  // too little for other translations
  options.model.dropout = 0;
  options.patience = 3;
  const TrainResult result = train(options);
  EXPECT_EQ(result.finished, "no improvement in 3 validations");
  const auto validations = events_of(options.run, "validation");
  ASSERT_EQ(validations.size(), 4U);
  for (const auto& each : validations) ASSERT_EQ(each.at("bleu"), validations[0].at("bleu"));
  ASSERT_LT(validations[3].at("loss"), validations[0].at("loss"));
  EXPECT_EQ(result.best_update, 24);
  expect_root_is(options, 24, kWeightsPrefix);
}

TEST(Trainer, TheBestOnesDoNotCountAmongTheLastCheckpoints) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");  // each validation is better than the last
  options.stop_after = {.updates = 60};
  options.validate_every = {.updates = 4};
  options.checkpoint_every = {.updates = 20};
  options.keep_last = 3;
  const TrainResult result = train(options);
  ASSERT_EQ(result.best_update, 60);
  EXPECT_EQ(checkpoints_of(options), (std::vector<int64_t>{20, 40, 60}));
}

TEST(Trainer, LabelSmoothingIsInTheLossOfAValidationAndNotInItsPerplexity) {
  const TrainingFolder folder;
  for (const float smoothing : {0.0F, 0.1F}) {
    TrainOptions options = folder.worsening(fmt::format("run-{}", smoothing));
    options.stop_after = {.updates = 60};
    options.model.label_smoothing = smoothing;
    options.validation_metric = ValidationMetric::kPerplexity;
    const TrainResult result = train(options);
    double lowest = 1e9, widest = 0;
    int64_t lowest_update = 0;
    for (const auto& event : events_of(options.run, "validation")) {
      const double perplexity = event.at("perplexity"), loss = event.at("loss");
      widest = std::max(widest, std::abs(loss - std::log(perplexity)));
      if (perplexity < lowest) lowest_update = event.at("update");
      lowest = std::min(lowest, perplexity);
    }
    if (smoothing == 0) {
      EXPECT_LT(widest, 1e-6);
    } else {
      // A model that is sure of wrong words can lose by smoothing or gain: the two lines cross.
      EXPECT_GT(widest, 0.01);
    }
    EXPECT_EQ(result.best_update, lowest_update);
  }
}

TEST(Trainer, TheAverageOfTheLastCheckpointsIsTheModel) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  options.keep_last = 3;
  options.average_last = 2;
  train(options);
  EXPECT_EQ(checkpoints_of(options), (std::vector<int64_t>{10, 20, 30}));
  const SafetensorsFile root = SafetensorsFile::open(Path(options.run) / kWeightsFile);
  const SafetensorsFile a = SafetensorsFile::open(checkpoint_path(options.run, 20));
  const SafetensorsFile b = SafetensorsFile::open(checkpoint_path(options.run, 30));
  for (const std::string& name : root.names()) {
    const auto mean = root.read(name).to_vector();
    const auto first = a.read(std::string(kWeightsPrefix) + name).to_vector();
    const auto second = b.read(std::string(kWeightsPrefix) + name).to_vector();
    for (std::size_t i = 0; i < mean.size(); ++i) {
      ASSERT_EQ(mean[i], static_cast<float>((static_cast<double>(first[i]) + second[i]) / 2))
          << name;
    }
  }
  EXPECT_TRUE(events_of(options.run, "validation").empty()) << "there was none";
}

TEST(Trainer, AnAverageThatIsWorseIsNotUsed) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.checkpoint_every = {.updates = 15};
  options.keep_last = options.average_last = 3;
  const TrainResult result = train(options);
  // At this stage every validation is better than the one before, and the average lags behind.
  EXPECT_EQ(result.best_update, 30);
  expect_root_is(options, 30, kWeightsPrefix);
  EXPECT_FALSE(events_of(options.run, "validation").back().at("best").get<bool>());
}

TEST(Trainer, LimitsInEveryUnitEndTheRun) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("epochs");
  options.stop_after = {.epochs = 2.0};
  const TrainResult epochs = train(options);
  EXPECT_EQ(epochs.done.epochs, 2.0);
  EXPECT_EQ(epochs.finished, "stop_after 2e reached");
  const auto start = events_of(options.run, "start").at(0);
  EXPECT_EQ(start.at("pairs"), TrainingFolder::kPairs);

  options.run = folder.file("tokens");
  options.stop_after = {.tokens = epochs.done.tokens / 2};
  const TrainResult tokens = train(options);
  EXPECT_GE(tokens.done.tokens, epochs.done.tokens / 2);
  EXPECT_NEAR(tokens.done.epochs, 1.0, 0.2);

  options.run = folder.file("seconds");
  options.stop_after = {.seconds = 0.2};
  EXPECT_GE(train(options).done.seconds, 0.2);
}

TEST(Trainer, LogsAreForMachinesAndPeople) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  const CapturedLog log;
  train(options);
  std::map<std::string, int> count;
  double time = 0;
  for (const auto& event : events_of(options.run)) {
    ++count[event.at("event")];
    EXPECT_GE(event.at("time").get<double>(), time);
    time = event.at("time");
  }
  EXPECT_EQ(count["start"], 1);
  EXPECT_EQ(count["train"], 6);
  EXPECT_EQ(count["validation"], 5);
  EXPECT_GE(count["checkpoint"], 5);
  EXPECT_EQ(count["finish"], 1);
  const auto first = events_of(options.run, "train").at(0);
  EXPECT_EQ(first.at("update"), 5);
  for (const char* key : {"epoch", "target_tokens", "seconds", "loss", "perplexity",
                          "tokens_per_second", "learning_rate", "gradient_norm"}) {
    EXPECT_GT(first.at(key).get<double>(), 0) << key;
  }
  EXPECT_DOUBLE_EQ(first.at("learning_rate").get<double>(), 5e-3 * 5 / 10);
  // People read the same in the terminal and in the file, there with the time.
  std::istringstream shown(log.text());
  const std::string written = get(Path(options.run) / "train.log");
  int lines = 0;
  for (std::string line; std::getline(shown, line); ++lines) expect_contains(written, " " + line);
  EXPECT_GE(lines, 6);
}

TEST(Trainer, WithRDropTheLossStaysTheCrossEntropyAndTheDivergenceIsLoggedBesideIt) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("plain");
  options.learning_rate = 1e-9;  // nothing is learned: both runs see the same model throughout
  const TrainResult plain = train(options);
  const auto without = events_of(options.run, "train");
  options.run = folder.file("r-drop");
  options.regularization.r_drop = 100;
  std::string shown;
  TrainHooks hooks;
  hooks.on_log = [&](const TrainProgress& progress) { shown = to_string(progress); };
  EXPECT_EQ(train(options, hooks).done.tokens, plain.done.tokens) << "every token counts once";
  const auto with = events_of(options.run, "train");
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_FALSE(without[i].contains("divergence"));
    EXPECT_GT(with[i].at("divergence").get<double>(), 1e-3);
    EXPECT_NEAR(with[i].at("loss").get<double>(), without[i].at("loss").get<double>(), 0.05);
  }
  expect_contains(shown, ", divergence 0.");
}

TEST(Contract9, PairsLeftOutAreCountedByReasonBeforeTrainingStarts) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  std::string a = sentences(20, 5), b = in_capitals(a);
  const auto add = [&](const std::string& left, const std::string& right) {
    a += left + "\n";
    b += right + "\n";
  };
  add("", "ONE");
  add("one", "  ");
  add("one \xff two", "ONE TWO");
  std::string long_line = "one";
  for (int i = 0; i < 60; ++i) long_line += " two";
  add(long_line, in_capitals(long_line));
  add("one", "ONE TWO THREE FOUR FIVE SIX RED DOG HOUSE ONE TWO THREE FOUR FIVE");
  put(folder.file("train.a"), a);
  put(folder.file("train.b"), b);
  options.max_length = 50;
  options.max_length_ratio = 5;
  options.stop_after = {.updates = 2};
  train(options);
  const auto events = events_of(options.run);
  EXPECT_EQ(events.at(0).at("event"), "start");
  const auto& data = events.at(0).at("data");
  EXPECT_EQ(data.at("pairs_read"), 25);
  EXPECT_EQ(data.at("pairs_kept"), 20);
  EXPECT_EQ(data.at("empty"), 2);
  EXPECT_EQ(data.at("bad_utf8"), 1);
  EXPECT_EQ(data.at("too_long"), 1);
  EXPECT_EQ(data.at("length_ratio"), 1);
  const std::string text = get(Path(options.run) / "train.log");
  expect_contains(text, "20 pairs; left out 5: 2 empty");
  EXPECT_LT(text.find("left out 5"), text.find("model: ")) << "before training starts";
}

TEST(Trainer, ValidationLinesAsLongAsTheModelIs) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.model.max_length = 20;
  options.max_length = 19;
  options.stop_after = {.updates = 2};
  options.validation_metric = ValidationMetric::kBleu;
  const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
  std::string text;
  for (std::size_t tokens = 18; tokens <= 22; ++tokens) {
    std::string line = "one";
    while (tokenizer.encode(line).size() < tokens) line += " q";
    text += line + "\n";
  }
  put(options.valid_source, text);
  put(options.valid_target, text);
  const CapturedLog log;
  EXPECT_TRUE(train(options).last_scores->bleu.has_value());
  expect_contains(log.text(), "too long");
}

TEST(Contract25, ValidationScoresAreThoseOfTranslateAndEvaluate) {
  const TrainingFolder folder;
  TrainOptions options = folder.validated("run");
  options.model.d_model = 32;
  options.model.d_ff = 64;
  options.model.dropout = 0;
  options.stop_after = options.validate_every = {.updates = 500};
  options.validation_metric = ValidationMetric::kBleu;
  options.ema = 0.9;
  options.batch_tokens = 400;
  options.workers = 2;
  const TrainResult result = train(options);
  ASSERT_TRUE(result.last_scores && result.last_scores->bleu && result.last_scores->chrf);
  ASSERT_GT(*result.last_scores->bleu, 1.0) << "the test wants a score worth comparing";

  const Finished translated = run_attend_command(
      {"translate", "--model", options.run, "--input", options.valid_source, "--quiet"});
  ASSERT_EQ(translated.status, 0) << translated.err;
  put(folder.file("hypothesis"), translated.out);
  const Finished evaluated =
      run_attend_command({"evaluate", "--reference", options.valid_target, "--hypothesis",
                          folder.file("hypothesis"), "--json", "--width", "12"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  const auto scores = nlohmann::json::parse(evaluated.out);
  EXPECT_NEAR(scores.at(0).at("score").get<double>(), *result.last_scores->bleu, 1e-9);
  EXPECT_NEAR(scores.at(1).at("score").get<double>(), *result.last_scores->chrf, 1e-9);
  const auto logged = events_of(options.run, "validation").at(0);
  EXPECT_DOUBLE_EQ(logged.at("bleu").get<double>(), *result.last_scores->bleu);
}

TEST(Trainer, OneTrainingInARunAtATime) {
  const TrainingFolder folder;
  const TrainOptions options = folder.options("run");
  std::string message;
  TrainHooks hooks;
  hooks.on_update = [&](const TrainProgress& progress) {
    if (progress.done.updates == 5) message = message_of([&] { train(options); });
  };
  train(options, hooks);
  expect_contains(message, fmt::format("another training (process {}) is running in ", getpid()));
}

TEST(Trainer, WritesOverNoModelButItsOwn) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("run");
  train(options);
  options.run = folder.file("copy");
  std::filesystem::create_directory(options.run);
  for (const char* name : {kWeightsFile, kConfigFile, kTokenizerFile}) {
    std::filesystem::copy(folder.file("run") / name, Path(options.run) / name);
  }
  const auto before = entries_of(options.run);
  expect_contains(message_of([&] { train(options); }), options.run + " holds a model, but not");
  EXPECT_EQ(entries_of(options.run), before);
}

TEST(Trainer, NamesWhatIsMissing) {
  const TrainingFolder folder;
  TrainOptions options = folder.options("");
  options.run.clear();
  expect_contains(message_of([&] { train(options); }), "--run");
  options = folder.options("run");
  options.train_source = {folder.file("missing")};
  expect_contains(message_of([&] { train(options); }), folder.file("missing").string());
  EXPECT_FALSE(std::filesystem::exists(folder.file("run") / "recipe.yaml"));
  const auto events = events_of(options.run);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].at("event"), "error");
  expect_contains(get(Path(options.run) / "train.log"), "error: ");
}

}  // namespace
}  // namespace attend
