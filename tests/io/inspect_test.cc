#include "attend/io/inspect.h"

#include <gtest/gtest.h>

#include "attend/io/checkpoint.h"
#include "attend/io/model_directory.h"
#include "tests/io/models.h"

namespace attend {
namespace {

TEST(Inspect, DescribesAModelDirectory) {
  const TemporaryFolder folder;
  const TransformerConfig config = small_config();
  save_model_directory(folder.path(), config, small_tokenizer(), small_tokenizer(),
                       small_weights(config));
  save_checkpoint(folder.path(), 7, {}, {});
  const std::string text = inspect(folder.path());
  expect_contains(text, "  d_model                 4\n");
  expect_contains(text, "  tied_embeddings         all\n");
  expect_contains(text,
                  "joint tokenizer: 300 pieces, fingerprint " + small_tokenizer()->fingerprint());
  expect_contains(text, "\"decoder.weight\"");
  expect_contains(text, "total: 2 tensors, 1,596 elements, 6,384 bytes\n");
  expect_contains(text, "checkpoint of step 7: ");
  ASSERT_EQ(parameter_count(config), 1596);
}

TEST(Inspect, DescribesACheckpoint) {
  const TemporaryFolder run;
  save_checkpoint(run.path(), 7,
                  {{"weights/w", Tensor::zeros({1000, 2}, DType::kFloat32)},
                   {"adam_m/w", Tensor::zeros({1000, 2}, DType::kBFloat16)}},
                  {{"best", 0.5}});
  const std::string text = inspect(checkpoint_path(run.path(), 7));
  expect_contains(text, "checkpoint of step 7, whole\n");
  expect_contains(text, "best");
  expect_contains(
      text, "\"weights/w\"  F32     [1000, 2]                      2,000             8,000\n");
  expect_contains(text, "\"adam_m/\": 1 tensors, 2,000 elements, 4,000 bytes\n");
  expect_contains(text, "total: 2 tensors, 4,000 elements, 12,000 bytes\n");
}

TEST(Inspect, RefusesOtherFiles) {
  const TemporaryFolder folder;
  put(folder / "text", "a text that is no model, whatever it may be");
  expect_contains(message_of([&] { inspect(folder / "text"); }),
                  (folder / "text").string() + " is no safetensors file");
  expect_contains(message_of([&] { inspect(folder / "missing"); }), "No such file");
  expect_contains(message_of([&] { inspect(folder.path()); }), "is not a complete model directory");
}

}  // namespace
}  // namespace attend
