#pragma once

namespace attend {

/// What a training pass does beside dropout and label smoothing so that the model generalises; no
/// part of the model. Rates are probabilities from 0 to below 1; 0 is off. See
/// docs/regularization.md.
struct Regularization {
  /// The weight α of the divergence between two passes with different dropout (R-Drop; Wu, Liang et
  /// al. 2021); 0: one pass.
  float r_drop = 0;
  /// That a layer is left out of an update (Fan et al. 2019).
  float layer_drop = 0;
  /// That a token's embedding is left out (Gal & Ghahramani 2016; Sennrich et al. 2016).
  float source_word_dropout = 0;
  float target_word_dropout = 0;
};

}  // namespace attend
