#include "attend/io/model_directory.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/io/models.h"

namespace attend {
namespace {

using Names = std::vector<std::string>;

/// A complete model with a joint tokenizer.
void save_joint(const Path& directory, float value = 1) {
  const TransformerConfig config = small_config();
  save_model_directory(directory, config, small_tokenizer(), small_tokenizer(),
                       small_weights(config, value));
}

std::string refused(const Path& directory) {
  return message_of([&] { load_model_directory(directory); });
}

TEST(ModelDirectory, GoesBothWaysWithAJointTokenizer) {
  const TemporaryFolder folder;
  const Path model = folder / "runs/one";
  const TransformerConfig config = small_config();
  save_model_directory(model, config, small_tokenizer(), small_tokenizer(),
                       small_weights(config, 3), {{"step", "12"}});
  EXPECT_EQ(entries_of(model), (Names{"config.json", "model.safetensors", "tokenizer.model"}));
  const ModelFiles files = load_model_directory(model);
  EXPECT_EQ(files.config, config);
  EXPECT_EQ(files.source_tokenizer, files.target_tokenizer);
  EXPECT_EQ(files.source_tokenizer->fingerprint(), small_tokenizer()->fingerprint());
  EXPECT_EQ(files.weights.metadata().at("step"), "12");
  EXPECT_EQ(files.weights.read("decoder.weight").to_vector(), std::vector<float>(100, 3));
}

TEST(ModelDirectory, GoesBothWaysWithSeparateTokenizers) {
  const TemporaryFolder folder;
  const TransformerConfig config = small_config(300, 305);
  save_model_directory(folder.path(), config, small_tokenizer(300), small_tokenizer(305),
                       small_weights(config));
  EXPECT_EQ(entries_of(folder.path()), (Names{"config.json", "model.safetensors",
                                              "source.tokenizer.model", "target.tokenizer.model"}));
  const ModelFiles files = load_model_directory(folder.path());
  EXPECT_EQ(files.source_tokenizer->vocabulary_size(), 300);
  EXPECT_EQ(files.target_tokenizer->vocabulary_size(), 305);
}

TEST(ModelDirectory, ARunRewritesItsWeightsAlone) {
  const TemporaryFolder folder;
  save_joint(folder.path(), 1);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {kConfigFile, kTokenizerFile}) {
    std::filesystem::last_write_time(folder / name, old);
  }
  const auto config_time = std::filesystem::last_write_time(folder / kConfigFile);
  const auto tokenizer_time = std::filesystem::last_write_time(folder / kTokenizerFile);
  save_joint(folder.path(), 2);
  EXPECT_EQ(std::filesystem::last_write_time(folder / kConfigFile), config_time);
  EXPECT_EQ(std::filesystem::last_write_time(folder / kTokenizerFile), tokenizer_time);
  const ModelFiles files = load_model_directory(folder.path());
  EXPECT_EQ(files.weights.read("decoder.weight").to_vector(), std::vector<float>(100, 2));
}

TEST(ModelDirectory, AnotherModelReplacesAllFiles) {
  const TemporaryFolder folder;
  save_joint(folder.path());
  const TransformerConfig config = small_config(300, 305);
  save_model_directory(folder.path(), config, small_tokenizer(300), small_tokenizer(305),
                       small_weights(config));
  EXPECT_EQ(load_model_directory(folder.path()).config, config);
  EXPECT_FALSE(std::filesystem::exists(folder / kTokenizerFile));
  save_joint(folder.path());
  EXPECT_EQ(load_model_directory(folder.path()).config, small_config());
}

TEST(ModelDirectory, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  const Path model = folder / "model";
  expect_contains(refused(model), "there is no folder " + model.string());
  put(folder / "file", "");
  expect_contains(refused(folder / "file"), "is not a folder");
  std::filesystem::create_directory(model);
  EXPECT_EQ(refused(model), model.string() +
                                " is not a complete model directory: it lacks config.json and "
                                "model.safetensors and tokenizer.model");
  save_joint(model);
  std::filesystem::remove(model / kWeightsFile);
  expect_contains(refused(model), "it lacks model.safetensors");
  save_joint(model);
  std::filesystem::rename(model / kTokenizerFile, model / kTargetTokenizerFile);
  expect_contains(refused(model), "it lacks source.tokenizer.model");
  put(model / kTokenizerFile, small_tokenizer()->serialized());
  expect_contains(refused(model), "holds tokenizer.model and target.tokenizer.model too");
}

TEST(Contract21, VocabularySizesDisagree) {
  const TemporaryFolder folder;
  save_joint(folder.path());
  put(folder / kTokenizerFile, small_tokenizer(305)->serialized());
  const std::string message = refused(folder.path());
  expect_contains(message, (folder / kTokenizerFile).string() + " has a vocabulary of 305");
  expect_contains(message, "config.json says source_vocabulary_size 300");

  const TransformerConfig config = small_config(300, 305);
  save_model_directory(folder.path(), config, small_tokenizer(300), small_tokenizer(305),
                       small_weights(config));
  put(folder / kTargetTokenizerFile, small_tokenizer(310)->serialized());
  expect_contains(refused(folder.path()), "target.tokenizer.model has a vocabulary of 310");
}

TEST(Contract21, WeightsOfAnotherConfiguration) {
  const TemporaryFolder folder;
  save_joint(folder.path());
  TransformerConfig config = small_config();
  const int64_t saved = parameter_count(config);
  config.d_ff = 7;
  put(folder / kConfigFile, to_json(config));
  expect_contains(refused(folder.path()),
                  fmt::format("model.safetensors holds {} weights, but {} describes a model of {}",
                              saved, (folder / kConfigFile).string(), parameter_count(config)));
}

TEST(Contract21, AnotherConfigurationOfTheSameSize) {
  const TemporaryFolder folder;
  const TransformerConfig config = small_config();
  save_model_directory(folder.path(), config, small_tokenizer(), small_tokenizer(),
                       small_weights(config));
  TransformerConfig other = config;
  other.norm = NormPlacement::kPost;
  other.activation = Activation::kGelu;
  put(folder / kConfigFile, to_json(other));
  const std::string message = message_of([&] { load_model_directory(folder.path()); });
  expect_contains(message, (folder / kConfigFile).string() + " is not the one that " +
                               (folder / kWeightsFile).string() + " was saved with");
  expect_contains(message, "activation is gelu in the first and relu in the second");

  // The same meaning in other words, as another version may write it.
  std::string text = to_json(config);
  text.replace(text.find("\n  "), 3, " ");
  put(folder / kConfigFile, text);
  EXPECT_EQ(load_model_directory(folder.path()).config, config);

  // Weights that do not say it, of earlier versions, are taken as they are.
  put(folder / kConfigFile, to_json(other));
  write_safetensors(folder / kWeightsFile, small_weights(config));
  EXPECT_EQ(load_model_directory(folder.path()).config, other);
}

TEST(Contract19ModelDirectory, AHostileConfigurationInTheWeightsIsRefused) {
  const TemporaryFolder folder;
  const TransformerConfig config = small_config();
  save_model_directory(folder.path(), config, small_tokenizer(), small_tokenizer(),
                       small_weights(config));
  write_safetensors(folder / kWeightsFile, small_weights(config), {{kConfigKey, "[[[["}});
  expect_contains(message_of([&] { load_model_directory(folder.path()); }),
                  "attend_config in its metadata: ");
}

TEST(Contract21, AnotherTokenizerOfTheSameSize) {
  const TemporaryFolder folder;
  save_joint(folder.path());
  TokenizerTrainingOptions options;
  options.vocabulary_size = 300;
  int lines = 0;
  const Tokenizer other = Tokenizer::train(options, [&](std::string& line) {
    line = fmt::format("zwei Züge fahren zur Zugspitze {}", lines);
    return ++lines < 100;
  });
  ASSERT_EQ(other.vocabulary_size(), 300);
  put(folder / kTokenizerFile, other.serialized());
  const std::string message = refused(folder.path());
  expect_contains(message, small_tokenizer()->fingerprint());
  expect_contains(message, other.fingerprint());
  expect_contains(message, "they do not belong together");
}

TEST(Contract13, FullDiskKeepsTheOldModel) {
  SmallDisk disk("320k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const Path model = disk.path() / "run";
  save_joint(model, 1);
  put(disk.path() / "ballast", std::string(free_bytes(disk.path()) - 4096, 'x'));
  expect_contains(message_of([&] { save_joint(model, 2); }),
                  "cannot write " + (model / kWeightsFile).string() + ": No space left");
  const ModelFiles files = load_model_directory(model);
  EXPECT_EQ(files.weights.read("decoder.weight").to_vector(), std::vector<float>(100, 1));
}

TEST(Contract13, ACrashNeverLeavesTwoModelsMixed) {
  SmallDisk disk("320k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  save_joint(disk.path());
  put(disk.path() / "ballast", std::string(free_bytes(disk.path()) - 8192, 'x'));
  TransformerConfig config = small_config();
  config.d_ff = 60'000;
  EXPECT_THROW(save_model_directory(disk.path(), config, small_tokenizer(), small_tokenizer(),
                                    small_weights(config)),
               Error);
  expect_contains(refused(disk.path()), "it lacks model.safetensors");
}

TEST(Contract19ModelDirectory, MutatedModelsAreLoadedOrRefused) {
  const TemporaryFolder folder;
  save_joint(folder.path());
  std::mt19937 random(23);
  int loaded = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) {
    const Path victim = folder / std::vector{kConfigFile, kWeightsFile, kTokenizerFile}[round % 3];
    const std::string valid = get(victim);
    put(victim, mutated(valid, random));
    try {
      const ModelFiles files = load_model_directory(folder.path());
      for (const std::string& name : files.weights.names()) files.weights.read(name);
      ++loaded;
    } catch (const Error&) {
    }
    put(victim, valid);
  }
  EXPECT_LT(loaded, kRounds / 2);
  EXPECT_NO_THROW(load_model_directory(folder.path()));
}

}  // namespace
}  // namespace attend
