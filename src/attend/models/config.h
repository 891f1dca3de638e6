#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

enum class Positions { kSinusoidal, kLearned, kRotary };
enum class NormPlacement { kPost, kPre };
enum class Activation { kRelu, kGelu, kSilu };
/// kAll: source embedding, target embedding and output projection are one matrix (§3.4);
/// kDecoder: target embedding and output projection are one, the source has its own; kNone: three.
enum class TiedEmbeddings { kAll, kDecoder, kNone };
enum class AttentionScore { kScaledDotProduct, kAdditive };

/// The shape of an encoder-decoder Transformer, with the names of Vaswani et al. 2017. This is
/// what config.json of a model directory holds. The defaults are the paper's base model.
struct TransformerConfig {
  int64_t source_vocabulary_size = 0;
  int64_t target_vocabulary_size = 0;
  int64_t encoder_layers = 6;
  int64_t decoder_layers = 6;
  int64_t d_model = 512;
  int64_t d_ff = 2048;
  int64_t heads = 8;
  int64_t d_k = 0;                  ///< width of a head's queries and keys; 0 means d_model / heads
  int64_t d_v = 0;                  ///< width of a head's values; 0 means d_model / heads
  float dropout = 0.1f;             ///< residual dropout, §5.4
  float attention_dropout = 0.0f;   ///< on the attention weights
  float ffn_dropout = 0.0f;         ///< on the inner activations of the feed-forward layer
  float embedding_dropout = -1.0f;  ///< on embedding + position sums; negative means `dropout`
  float label_smoothing = 0.1f;     ///< ε/V on every class
  Positions positions = Positions::kSinusoidal;
  NormPlacement norm = NormPlacement::kPost;
  Activation activation = Activation::kRelu;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::kAll;
  AttentionScore attention_score = AttentionScore::kScaledDotProduct;
  /// The longest sequence in tokens. Learned positions have this many rows; longer input lines are
  /// translated in pieces.
  int64_t max_length = 1024;

  int64_t key_width() const { return d_k > 0 ? d_k : d_model / heads; }
  int64_t value_width() const { return d_v > 0 ? d_v : d_model / heads; }
  float embedding_dropout_rate() const {
    return embedding_dropout < 0 ? dropout : embedding_dropout;
  }

  /// Throws UsageError naming the field, what it holds and what it may hold.
  void validate() const;
  bool operator==(const TransformerConfig&) const = default;
};

/// "base", "big" (Vaswani et al. 2017, table 3) or "tiny" (4+4 layers, 128/256, 4 heads, dropout
/// 0.3; Wu et al. 2021). Vocabulary sizes are left at 0. Throws UsageError for another name.
TransformerConfig preset(std::string_view name);
std::vector<std::string> preset_names();

/// Names as flags, YAML and config.json spell them, e.g. "sinusoidal", "post", "relu", "all",
/// "scaled_dot_product". The parsers throw UsageError listing the names that there are.
std::string_view name_of(Positions value);
std::string_view name_of(NormPlacement value);
std::string_view name_of(Activation value);
std::string_view name_of(TiedEmbeddings value);
std::string_view name_of(AttentionScore value);
Positions parse_positions(std::string_view name);
NormPlacement parse_norm(std::string_view name);
Activation parse_activation(std::string_view name);
TiedEmbeddings parse_tied_embeddings(std::string_view name);
AttentionScore parse_attention_score(std::string_view name);

/// The exact number of weights: biases on every linear layer but the output projection, a gain and
/// a bias in each LayerNorm, one more LayerNorm at the end of each stack with pre-norm, a table of
/// `max_length` rows in each stack with learned positions, one vector of d_k a head in each
/// attention with additive attention. `config` must be valid.
int64_t parameter_count(const TransformerConfig& config);

/// The layout of config.json. A file in a newer one is refused with the version that wrote it.
inline constexpr int64_t kConfigFormat = 1;

/// config.json. `config_from_json` treats the text as hostile: unknown, missing, repeated or
/// ill-typed fields and sizes out of bounds are an Error that names the file and the field.
std::string to_json(const TransformerConfig& config);
TransformerConfig config_from_json(const std::string& text, const std::string& file_name);

}  // namespace attend
