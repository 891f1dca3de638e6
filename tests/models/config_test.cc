#include "attend/models/config.h"

#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/version.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

TransformerConfig with_vocabulary(std::string_view name, int64_t size) {
  TransformerConfig config = preset(name);
  config.source_vocabulary_size = size;
  config.target_vocabulary_size = size;
  return config;
}

/// The message of the error that `call` throws, which must be exactly an E.
template <typename E = Error, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    EXPECT_EQ(typeid(error), typeid(E)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST(Config, PresetsHaveThePapersNumberOfWeights) {
  EXPECT_EQ(parameter_count(with_vocabulary("base", 37000)), 63'082'496);
  EXPECT_EQ(parameter_count(with_vocabulary("big", 37000)), 214'245'376);
  const TransformerConfig tiny = with_vocabulary("tiny", 10000);
  EXPECT_NO_THROW(tiny.validate());
  EXPECT_EQ(tiny.encoder_layers, 4);
  EXPECT_EQ(tiny.d_ff, 256);
  EXPECT_EQ(tiny.dropout, 0.3F);
  expect_contains(message_of<UsageError>([] { preset("huge"); }), "base, big, tiny");
}

TEST(Config, CountsEveryOption) {
  TransformerConfig config = with_vocabulary("tiny", 1000);
  const int64_t plain = parameter_count(config);
  const auto added = [&] { return parameter_count(config) - plain; };
  config.norm = NormPlacement::kPre;
  EXPECT_EQ(added(), 2 * 2 * 128);
  config = with_vocabulary("tiny", 1000);
  config.positions = Positions::kLearned;
  EXPECT_EQ(added(), 2 * 1024 * 128);
  config = with_vocabulary("tiny", 1000);
  config.tied_embeddings = TiedEmbeddings::kDecoder;
  config.source_vocabulary_size = 700;
  EXPECT_EQ(added(), 700 * 128);
  config.tied_embeddings = TiedEmbeddings::kNone;
  EXPECT_EQ(added(), (700 + 1000) * 128);
  config = with_vocabulary("tiny", 1000);
  config.attention_score = AttentionScore::kAdditive;
  EXPECT_EQ(added(), 12 * 128);
  config = with_vocabulary("tiny", 1000);
  config.d_k = 16;  // half of 32: half of Q and K, with their biases, in 12 attentions
  EXPECT_EQ(added(), -12 * 2 * (128 * 64 + 64));
  config = with_vocabulary("tiny", 1000);
  config.d_v = 64;
  EXPECT_EQ(added(), 12 * (128 * 128 + 128 + 128 * 128));
}

TEST(Config, ValidateNamesEveryFieldOutOfBounds) {
  struct Case {
    std::string_view field;
    void (*spoil)(TransformerConfig&);
  };
  const std::vector<Case> cases = {
      {"source_vocabulary_size is 0", [](auto& c) { c.source_vocabulary_size = 0; }},
      {"target_vocabulary_size is -5", [](auto& c) { c.target_vocabulary_size = -5; }},
      {"encoder_layers is 0", [](auto& c) { c.encoder_layers = 0; }},
      {"decoder_layers is 1001", [](auto& c) { c.decoder_layers = 1001; }},
      {"d_model is 0", [](auto& c) { c.d_model = 0; }},
      {"d_model is 130, which 4 heads", [](auto& c) { c.d_model = 130; }},
      {"d_ff is 9223372036854775807", [](auto& c) { c.d_ff = INT64_MAX; }},
      {"heads is 0", [](auto& c) { c.heads = 0; }},
      {"d_k is -1", [](auto& c) { c.d_k = -1; }},
      {"d_v is 16385", [](auto& c) { c.d_v = 16385; }},
      {"max_length is 1;", [](auto& c) { c.max_length = 1; }},
      {"max_length is 16777216; with d_model 128 it must be at most 1048576",
       [](auto& c) { c.max_length = 1 << 24; }},
      {"dropout is 1;", [](auto& c) { c.dropout = 1; }},
      {"attention_dropout is -0.1", [](auto& c) { c.attention_dropout = -0.1F; }},
      {"ffn_dropout is 2", [](auto& c) { c.ffn_dropout = 2; }},
      {"embedding_dropout is -2", [](auto& c) { c.embedding_dropout = -2; }},
      {"label_smoothing is 1", [](auto& c) { c.label_smoothing = 1; }},
      {"tied_embeddings is all", [](auto& c) { c.source_vocabulary_size = 999; }},
      {"d_k is 7;", [](auto& c) { c.d_k = 7, c.positions = Positions::kRotary; }},
      {"positions holds 9", [](auto& c) { c.positions = static_cast<Positions>(9); }},
      {"rotary and attention_score additive",
       [](auto& c) {
         c.positions = Positions::kRotary;
         c.attention_score = AttentionScore::kAdditive;
       }},
  };
  for (const Case& each : cases) {
    TransformerConfig config = with_vocabulary("tiny", 1000);
    each.spoil(config);
    expect_contains(message_of<UsageError>([&] { config.validate(); }), each.field);
  }
  TransformerConfig config = with_vocabulary("tiny", 1000);
  config.dropout = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(config.validate(), UsageError);
}

TEST(Config, LargestConfigurationDoesNotOverflow) {
  TransformerConfig config = with_vocabulary("base", int64_t{1} << 27);
  config.encoder_layers = config.decoder_layers = 1000;
  config.d_model = 1 << 17;
  config.d_ff = 1 << 20;
  config.heads = 1 << 10;
  config.d_k = config.d_v = 1 << 14;
  config.max_length = 1 << 10;
  config.validate();
  EXPECT_GT(parameter_count(config), int64_t{1} << 50);
  EXPECT_LT(parameter_count(config), int64_t{1} << 56);
}

TEST(Config, NamesGoBothWays) {
  for (const auto value : {Positions::kSinusoidal, Positions::kLearned, Positions::kRotary}) {
    EXPECT_EQ(parse_positions(name_of(value)), value);
  }
  EXPECT_EQ(parse_norm("pre"), NormPlacement::kPre);
  EXPECT_EQ(parse_activation("silu"), Activation::kSilu);
  EXPECT_EQ(parse_tied_embeddings("decoder"), TiedEmbeddings::kDecoder);
  EXPECT_EQ(parse_attention_score("additive"), AttentionScore::kAdditive);
  const std::string message = message_of<UsageError>([] { parse_activation("tanh"); });
  EXPECT_EQ(message, "activation is \"tanh\"; it may be one of: relu, gelu, silu");
}

TEST(Config, JsonGoesBothWays) {
  TransformerConfig config = with_vocabulary("tiny", 8000);
  EXPECT_EQ(config_from_json(to_json(config), "config.json"), config);
  config = with_vocabulary("big", 32000);
  config.source_vocabulary_size = 31999;
  config.tied_embeddings = TiedEmbeddings::kNone;
  config.positions = Positions::kRotary;
  config.norm = NormPlacement::kPre;
  config.activation = Activation::kGelu;
  config.embedding_dropout = 0.123456789F;
  config.d_v = 96;
  const std::string text = to_json(config);
  EXPECT_EQ(config_from_json(text, "config.json"), config);
  EXPECT_NE(text.find("\"dropout\": 0.3,"), std::string::npos) << text;
}

/// config.json with one change.
std::string changed(const std::function<void(Json&)>& change) {
  Json object = Json::parse(to_json(with_vocabulary("tiny", 1000)));
  change(object);
  return object.dump();
}

std::string refused(const std::string& text) {
  return message_of([&] { config_from_json(text, "m/config.json"); });
}

TEST(Contract19, ConfigNamesFileAndField) {
  expect_contains(refused(changed([](Json& o) { o.erase("d_ff"); })),
                  "m/config.json: the field \"d_ff\" is missing");
  expect_contains(refused(changed([](Json& o) { o["d_f"] = 1; })), "unknown field \"d_f\"");
  expect_contains(refused(changed([](Json& o) { o["heads"] = "8"; })),
                  "\"heads\" holds \"8\"; expected a whole number");
  expect_contains(refused(changed([](Json& o) { o["heads"] = 8.0; })), "holds 8.0; expected");
  expect_contains(refused(changed([](Json& o) { o["heads"] = UINT64_MAX; })), "at most 64 bits");
  expect_contains(refused(changed([](Json& o) { o["dropout"] = nullptr; })), "\"dropout\" holds");
  expect_contains(refused(changed([](Json& o) { o["dropout"] = 1e300; })), "\"dropout\" holds");
  expect_contains(refused(changed([](Json& o) { o["d_model"] = INT64_MAX; })),
                  "m/config.json: d_model is 9223372036854775807; it must be from 1 to");
  expect_contains(refused(changed([](Json& o) { o["norm"] = "both"; })),
                  "m/config.json: norm is \"both\"; it may be one of: post, pre");
  expect_contains(refused(changed([](Json& o) { o["norm"] = Json::object(); })),
                  "object or a list");
  expect_contains(refused("{\"format\": 1, \"format\": 1}"), "\"format\" is there twice");
  expect_contains(refused(""), "m/config.json: not valid JSON");
  expect_contains(refused("[1]"), "expected a JSON object");
  expect_contains(refused("{\"format\": 1e999}"), "m/config.json: not valid JSON");
  expect_contains(refused(std::string(100'000, '[')), "m/config.json: ");
  expect_contains(refused("{\"a\":" + std::string(100'000, '[')), "object or a list");
}

TEST(Contract19, HostileTextDoesNotReachTheTerminal) {
  const std::string message = refused(changed([](Json& o) { o["\x1b[2J"] = 1; }));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  expect_contains(message, "\\u001b[2J");
}

TEST(Contract19, MutatedConfigIsReadOrRefused) {
  const std::string valid = to_json(with_vocabulary("tiny", 1000));
  std::mt19937 random(7);
  int refusals = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = valid;
    if (round % 4 == 0) text.resize(random() % text.size());
    for (unsigned change = random() % 4; change > 0 && !text.empty(); --change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1, "{}[]\",:0-9e."[random() % 12]);
          break;
        default:
          text.erase(at, 1 + random() % 8);
          break;
      }
    }
    try {
      config_from_json(text, "config.json").validate();
    } catch (const Error&) {
      ++refusals;
    }
  }
  EXPECT_GT(refusals, 10000);
}

TEST(Contract20, NewerFormatNamesTheVersionThatWroteIt) {
  const std::string message = refused(changed([](Json& o) {
    o["format"] = 2;
    o["attend_version"] = "3.1.4";
    o["something_new"] = true;
  }));
  expect_contains(message, "written by attend \"3.1.4\" in format 2");
  expect_contains(message, fmt::format("this is attend {}", kVersion));
  expect_contains(message, "install attend \"3.1.4\" or later");
  expect_contains(refused(changed([](Json& o) { o["format"] = 0; })), "\"format\" holds 0");
}

/// As version 0.1.0 wrote it: every later version must read these bytes.
TEST(Contract20, ReadsTheFirstFormat) {
  const TransformerConfig config = config_from_json(R"({
    "format": 1, "attend_version": "0.1.0",
    "source_vocabulary_size": 100, "target_vocabulary_size": 200,
    "encoder_layers": 2, "decoder_layers": 3, "d_model": 64, "d_ff": 96, "heads": 2,
    "d_k": 0, "d_v": 16, "dropout": 0.25, "attention_dropout": 0, "ffn_dropout": 0.5,
    "embedding_dropout": -1, "label_smoothing": 0.0, "positions": "learned", "norm": "pre",
    "activation": "gelu", "tied_embeddings": "decoder", "attention_score": "additive",
    "max_length": 77})",
                                                    "config.json");
  EXPECT_EQ(config.decoder_layers, 3);
  EXPECT_EQ(config.key_width(), 32);
  EXPECT_EQ(config.embedding_dropout_rate(), 0.25F);
  EXPECT_EQ(config.attention_score, AttentionScore::kAdditive);
  EXPECT_EQ(config.max_length, 77);
}

TEST(Version, IsTheProjects) {
  std::ifstream file(ATTEND_SOURCE_DIR "/CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  expect_contains(text.str(), fmt::format("project(attend VERSION {} ", kVersion));
}

}  // namespace
}  // namespace attend
