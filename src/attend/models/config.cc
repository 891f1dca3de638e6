#include "attend/models/config.h"

#include <array>
#include <set>
#include <span>

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/models/config_fields.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

constexpr std::array kPositionNames = {EnumName<Positions>{Positions::kSinusoidal, "sinusoidal"},
                                       EnumName<Positions>{Positions::kLearned, "learned"},
                                       EnumName<Positions>{Positions::kRotary, "rotary"}};
constexpr std::array kNormNames = {EnumName<NormPlacement>{NormPlacement::kPost, "post"},
                                   EnumName<NormPlacement>{NormPlacement::kPre, "pre"}};
constexpr std::array kActivationNames = {EnumName<Activation>{Activation::kRelu, "relu"},
                                         EnumName<Activation>{Activation::kGelu, "gelu"},
                                         EnumName<Activation>{Activation::kSilu, "silu"}};
constexpr std::array kTiedNames = {EnumName<TiedEmbeddings>{TiedEmbeddings::kAll, "all"},
                                   EnumName<TiedEmbeddings>{TiedEmbeddings::kDecoder, "decoder"},
                                   EnumName<TiedEmbeddings>{TiedEmbeddings::kNone, "none"}};
constexpr std::array kScoreNames = {
    EnumName<AttentionScore>{AttentionScore::kScaledDotProduct, "scaled_dot_product"},
    EnumName<AttentionScore>{AttentionScore::kAdditive, "additive"}};

template <typename Enum>
std::string_view find_name(std::span<const EnumName<Enum>> names, std::string_view field,
                           Enum value) {
  for (const auto& each : names) {
    if (each.value == value) return each.name;
  }
  fail_usage("{} holds {}, which is none of its values", field, static_cast<int>(value));
}

template <typename Enum>
Enum find_value(std::span<const EnumName<Enum>> names, std::string_view field,
                std::string_view name) {
  std::string known;
  for (const auto& each : names) {
    if (each.name == name) return each.value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
  }
  fail_usage("{} is {}; it may be one of: {}", field, shown(name), known);
}

/// These bounds keep every product in parameter_count below 2^56.
void check_sizes(const TransformerConfig& config) {
  const auto within = [](const char* field, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) {
      fail_usage("{} is {}; it must be from {} to {}", field, value, least, most);
    }
  };
  constexpr int64_t kMostTokens = int64_t{1} << 27;
  constexpr int64_t kMostLayers = 1000;
  constexpr int64_t kMostHeadWidth = 1 << 14;
  within("source_vocabulary_size", config.source_vocabulary_size, 2, kMostTokens);
  within("target_vocabulary_size", config.target_vocabulary_size, 2, kMostTokens);
  within("encoder_layers", config.encoder_layers, 1, kMostLayers);
  within("decoder_layers", config.decoder_layers, 1, kMostLayers);
  within("d_model", config.d_model, 1, 1 << 17);
  within("d_ff", config.d_ff, 1, 1 << 20);
  within("heads", config.heads, 1, 1 << 10);
  within("d_k", config.d_k, 0, kMostHeadWidth);
  within("d_v", config.d_v, 0, kMostHeadWidth);
  within("max_length", config.max_length, 2, 1 << 24);
  constexpr int64_t kMostOfPositions = int64_t{1} << 27;  // numbers in a table: 512 MiB
  if (config.max_length * config.d_model > kMostOfPositions) {
    fail_usage("max_length is {}; with d_model {} it must be at most {}", config.max_length,
               config.d_model, kMostOfPositions / config.d_model);
  }
  if ((config.d_k == 0 || config.d_v == 0) && config.d_model % config.heads != 0) {
    fail_usage("d_model is {}, which {} heads do not divide; change one, or give both d_k and d_v",
               config.d_model, config.heads);
  }
  within("d_model / heads", config.key_width(), 1, kMostHeadWidth);
  within("d_model / heads", config.value_width(), 1, kMostHeadWidth);
}

void check_rates(const TransformerConfig& config) {
  const auto rate = [](const char* field, float value) {
    if (!(value >= 0 && value < 1)) {
      fail_usage("{} is {}; it must be at least 0 and less than 1", field, value);
    }
  };
  rate("dropout", config.dropout);
  rate("attention_dropout", config.attention_dropout);
  rate("ffn_dropout", config.ffn_dropout);
  rate("label_smoothing", config.label_smoothing);
  if (!(config.embedding_dropout >= -1 && config.embedding_dropout < 1)) {
    fail_usage(
        "embedding_dropout is {}; it must be at least 0 and less than 1, or -1 for the same as "
        "dropout",
        config.embedding_dropout);
  }
}

void check_combinations(const TransformerConfig& config) {
  if (config.tied_embeddings == TiedEmbeddings::kAll &&
      config.source_vocabulary_size != config.target_vocabulary_size) {
    fail_usage(
        "tied_embeddings is all, but source_vocabulary_size is {} and target_vocabulary_size {}; "
        "use a joint vocabulary, or tied_embeddings decoder or none",
        config.source_vocabulary_size, config.target_vocabulary_size);
  }
  if (config.positions == Positions::kSinusoidal && config.d_model % 2 != 0) {
    fail_usage("d_model is {}; with sinusoidal positions it must be even", config.d_model);
  }
  if (config.positions != Positions::kRotary) return;
  if (config.key_width() % 2 != 0) {
    fail_usage("d_k is {}; with rotary positions it must be even", config.key_width());
  }
  if (config.attention_score == AttentionScore::kAdditive) {
    fail_usage(
        "positions is rotary and attention_score additive; rotary positions act through dot "
        "products: use attention_score scaled_dot_product, or positions sinusoidal or learned");
  }
}

}  // namespace

void TransformerConfig::validate() const {
  visit_fields(*this, [](const char*, const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) name_of(field);
  });
  check_sizes(*this);
  check_rates(*this);
  check_combinations(*this);
}

TransformerConfig preset(std::string_view name) {
  TransformerConfig config;
  if (name == "base") return config;
  if (name == "big") {
    config.d_model = 1024;
    config.d_ff = 4096;
    config.heads = 16;
    config.dropout = 0.3F;
    return config;
  }
  if (name == "tiny") {
    config.encoder_layers = 4;
    config.decoder_layers = 4;
    config.d_model = 128;
    config.d_ff = 256;
    config.heads = 4;
    config.dropout = 0.3F;
    return config;
  }
  fail_usage("there is no preset {}; the presets are: {}", shown(name),
             fmt::join(preset_names(), ", "));
}

std::vector<std::string> preset_names() { return {"base", "big", "tiny"}; }

std::string_view name_of(Positions value) {
  return find_name<Positions>(kPositionNames, "positions", value);
}
std::string_view name_of(NormPlacement value) {
  return find_name<NormPlacement>(kNormNames, "norm", value);
}
std::string_view name_of(Activation value) {
  return find_name<Activation>(kActivationNames, "activation", value);
}
std::string_view name_of(TiedEmbeddings value) {
  return find_name<TiedEmbeddings>(kTiedNames, "tied_embeddings", value);
}
std::string_view name_of(AttentionScore value) {
  return find_name<AttentionScore>(kScoreNames, "attention_score", value);
}

Positions parse_positions(std::string_view name) {
  return find_value<Positions>(kPositionNames, "positions", name);
}
NormPlacement parse_norm(std::string_view name) {
  return find_value<NormPlacement>(kNormNames, "norm", name);
}
Activation parse_activation(std::string_view name) {
  return find_value<Activation>(kActivationNames, "activation", name);
}
TiedEmbeddings parse_tied_embeddings(std::string_view name) {
  return find_value<TiedEmbeddings>(kTiedNames, "tied_embeddings", name);
}
AttentionScore parse_attention_score(std::string_view name) {
  return find_value<AttentionScore>(kScoreNames, "attention_score", name);
}

int64_t parameter_count(const TransformerConfig& config) {
  const int64_t d = config.d_model;
  const auto linear = [](int64_t in, int64_t out) { return in * out + out; };
  const int64_t keys = config.heads * config.key_width();
  const int64_t values = config.heads * config.value_width();
  const bool additive = config.attention_score == AttentionScore::kAdditive;
  const int64_t attention =
      2 * linear(d, keys) + linear(d, values) + linear(values, d) + (additive ? keys : 0);
  const int64_t feed_forward = linear(d, config.d_ff) + linear(config.d_ff, d);
  const int64_t norm = 2 * d;
  const int64_t encoder = config.encoder_layers * (attention + feed_forward + 2 * norm);
  const int64_t decoder = config.decoder_layers * (2 * attention + feed_forward + 3 * norm);

  int64_t tables = config.target_vocabulary_size;
  if (config.tied_embeddings != TiedEmbeddings::kAll) tables += config.source_vocabulary_size;
  if (config.tied_embeddings == TiedEmbeddings::kNone) tables += config.target_vocabulary_size;
  if (config.positions == Positions::kLearned) tables += 2 * config.max_length;
  const int64_t final_norms = config.norm == NormPlacement::kPre ? 2 * norm : 0;
  return tables * d + encoder + decoder + final_norms;
}

}  // namespace attend
