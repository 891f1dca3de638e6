#include "attend/cli/train_options.h"

namespace attend {
namespace {

void define_data(OptionSet& options, TrainOptions& train) {
  options.group("Data");
  options.add("train_source", train.train_source, "Source side of the training text; .gz or not")
      .metavar("FILE")
      .changeable();
  options.add("train_target", train.train_target, "Target side, line by line the translation")
      .metavar("FILE")
      .changeable();
  options.add("train_tsv", train.train_tsv, "Training text as source TAB target")
      .metavar("FILE")
      .changeable();
  options.add("corpus_weights", train.corpus_weights,
              "How often an epoch sees each corpus: pairs of files first, then TSVs");
  options.add("valid_source", train.valid_source, "Source side of the validation text")
      .metavar("FILE")
      .changeable();
  options.add("valid_target", train.valid_target, "Target side of the validation text")
      .metavar("FILE")
      .changeable();
  options.add("valid_tsv", train.valid_tsv, "Validation text as source TAB target")
      .metavar("FILE")
      .changeable();
  options.add("skip_bad_lines", train.skip_bad_lines,
              "Leave out and count TSV lines without exactly one tab");
  options.add("max_length", train.max_length,
              "Tokens of either side; longer pairs are left out and counted");
  options.add("max_length_ratio", train.max_length_ratio,
              "Longer side / shorter side in tokens; pairs beyond are left out; 0 is no limit");
  options
      .add("cache", train.cache,
           "Where the training text's token ids are kept, for any number of runs; without it, in "
           "the run's folder")
      .metavar("DIR")
      .changeable();
}

void define_tokenizer(OptionSet& options, TrainOptions& train) {
  options.group("Tokenizer");
  options
      .add("tokenizer", train.tokenizer,
           "A SentencePiece model for both sides; without one, one is trained")
      .metavar("FILE")
      .changeable();
  options.add("source_tokenizer", train.source_tokenizer, "One for the source side alone")
      .metavar("FILE")
      .changeable();
  options.add("target_tokenizer", train.target_tokenizer, "One for the target side alone")
      .metavar("FILE")
      .changeable();
  options.add("vocabulary_size", train.vocabulary_size, "Pieces of a tokenizer that is trained")
      .quality();
  options.add("subword_model", train.subword_model, "How its pieces are found");
  options.add("joint_vocabulary", train.joint_vocabulary, "One tokenizer for both sides")
      .off_means("A tokenizer for each side instead of one for both");
  options.add("character_coverage", train.character_coverage,
              "Share of the characters of the text that become pieces");
  options.add("tokenizer_sample", train.tokenizer_sample,
              "Sentences that a tokenizer is trained on, at most");
  options
      .add("bpe_dropout", train.source_bpe_dropout,
           "Both source_bpe_dropout and target_bpe_dropout")
      .shorthand()
      .default_is("")
      .then([&] { train.target_bpe_dropout = train.source_bpe_dropout; });
  options.add(
      "source_bpe_dropout", train.source_bpe_dropout,
      "Probability that a merge of the source's subwords is left out, anew in each epoch; 0 "
      "is off, 0.1 is usual");
  options.add("target_bpe_dropout", train.target_bpe_dropout, "The same of the target's");
}

void define_dropout(OptionSet& options, TransformerConfig& model) {
  options.add("dropout", model.dropout, "On each sublayer's output").quality();
  options.add("attention_dropout", model.attention_dropout, "On the attention weights");
  options.add("ffn_dropout", model.ffn_dropout, "Inside the feed-forward layers");
  options.add("embedding_dropout", model.embedding_dropout,
              "On embeddings and positions; -1 is the same as dropout");
  options
      .add("label_smoothing", model.label_smoothing, "Mass that the loss spreads over all tokens")
      .quality();
}

void define_regularization(OptionSet& options, Regularization& regularization) {
  options.group("Regularization");
  options.add("r_drop", regularization.r_drop,
              "R-Drop: two passes a batch, and this weight on how far they differ; 0 is off");
  options.add("layer_drop", regularization.layer_drop,
              "How probably a layer is left out of an update; 0 is off");
  options.add("source_word_dropout", regularization.source_word_dropout,
              "How probably a source token's embedding is left out; 0 is off");
  options.add("target_word_dropout", regularization.target_word_dropout,
              "The same for the target tokens that the decoder reads");
}

void define_batches(OptionSet& options, TrainOptions& train) {
  options.group("Batches");
  options.add("batch_tokens", train.batch_tokens, "Tokens of a batch, of the side that has more")
      .quality();
  options.add("lanes", train.lanes, "Parts that a batch is cut into: so many or a multiple of it");
  options.add("lane_tokens", train.lane_tokens, "Tokens of a part, at most: it bounds memory");
  options.add("accumulate", train.accumulate, "Batches an update").quality();
}

void define_optimizer(OptionSet& options, TrainOptions& train) {
  options.group("Optimizer");
  options.add("optimizer", train.optimizer, "What turns gradients into updates").quality();
  options.add("adam_beta1", train.adam_beta1, "Decay of the mean of gradients");
  options.add("adam_beta2", train.adam_beta2, "Decay of the mean of their squares");
  options.add("adam_epsilon", train.adam_epsilon, "Added to the root of the latter");
  options.add("weight_decay", train.weight_decay,
              "adamw: decoupled from the gradient; adam: added to it");
  options.add("schedule", train.schedule, "How the learning rate goes up and down").quality();
  options
      .add("learning_rate", train.learning_rate,
           "Its peak; with the schedule paper, a factor on the paper's")
      .quality();
  options.add("warmup", train.warmup, "Updates until the peak").quality();
  options.add("clip_norm", train.clip_norm, "Scales gradients with a larger norm down; 0 is off");
  options.add("ema", train.ema, "Decay of the moving average of weights; 0 is off");
  options.add("max_bad_steps", train.max_bad_steps,
              "Stops after so many updates in a row without a finite loss and gradient");
}

void define_validation(OptionSet& options, TrainOptions& train) {
  options.group("Validation and checkpoints");
  options.add("validate_every", train.validate_every, "Between validations").changeable();
  options
      .add("validation_metric", train.validation_metric,
           "What says which model is the best; label smoothing is in loss and not in perplexity")
      .quality();
  options
      .add("patience", train.patience,
           "Stops after so many validations in a row without a better one; 0 is never")
      .changeable();
  options.add("valid_beam_size", train.valid_beam_size, "Of the translations that are validated")
      .quality();
  options.add("valid_length_penalty", train.valid_length_penalty, "Of those translations")
      .quality();
  options.add("checkpoint_every", train.checkpoint_every, "Between checkpoints").changeable();
  options.add("keep_last", train.keep_last, "Checkpoints kept").changeable();
  options
      .add("average_last", train.average_last,
           "At the end, the average of so many checkpoints becomes the model, where it is better; "
           "0 is "
           "off")
      .changeable();
}

void define_run(OptionSet& options, TrainOptions& train) {
  options.group("Run");
  options.add("run", train.run, "The run's folder; a run that is there already goes on")
      .metavar("DIR")
      .changeable();
  options.add("stop_after", train.stop_after, "When to stop").changeable();
  options.add("log_every", train.log_every, "Updates between lines of the log").changeable();
  options
      .add("tensorboard", train.tensorboard,
           "Also write the log's figures to event files for TensorBoard, into this folder")
      .metavar("DIR")
      .changeable();
  options.add("seed", train.seed, "Of all random numbers: same seed, same model");
  options
      .add("workers", train.workers,
           "Threads of each rank; 0 is one a core. They do not change the result")
      .changeable();
  options
      .add("memory", train.memory,
           "Keep the whole process within this, such as 4G, by making lanes smaller")
      .changeable();
  options
      .add("recompute", train.recompute,
           "Keep little between forward and backward: less memory, a third more time")
      .changeable();
  options.add("precision", train.precision,
              "Of matrix products; auto is bfloat16 where that is faster");
  options.add("profile", train.profile, "Say at the end where the time went, op by op")
      .changeable();
  options
      .add("dry_run", train.dry_run,
           "Check options, data, tokenizer, disk and memory, and say what the run will need")
      .changeable();
}

}  // namespace

Option& define_model_options(OptionSet& options, std::string& preset_name,
                             TransformerConfig& model) {
  std::string presets;
  for (const std::string& name : preset_names()) presets += (presets.empty() ? "" : "|") + name;
  options.group(fmt::format("Model (defaults of the preset {})", preset_name));
  Option& preset_option =
      options.add("preset", preset_name, "Sets the fields below, which override it one by one")
          .metavar(presets)
          .first()
          .quality()
          .then([&] { model = preset(preset_name); });
  options.add("layers", model.encoder_layers, "Both encoder_layers and decoder_layers")
      .shorthand()
      .default_is("")
      .then([&] { model.decoder_layers = model.encoder_layers; });
  options.add("encoder_layers", model.encoder_layers, "Layers of the encoder");
  options.add("decoder_layers", model.decoder_layers, "Layers of the decoder");
  options.add("d_model", model.d_model, "Width of embeddings and of every layer's output");
  options.add("d_ff", model.d_ff, "Inner width of the feed-forward layers");
  options.add("heads", model.heads, "Attention heads");
  options.add("d_k", model.d_k, "Width of a head's queries and keys; 0 is d_model / heads");
  options.add("d_v", model.d_v, "Width of a head's values; 0 is d_model / heads");
  define_dropout(options, model);
  options.add("positions", model.positions, "How tokens know where they stand");
  options.add("norm", model.norm, "Layer normalisation after each residual sum or before it");
  options.add("activation", model.activation, "Of the feed-forward layers");
  options.add("tied_embeddings", model.tied_embeddings,
              "Source, target and output matrices are one; the decoder's two are; or none");
  options.add("attention_score", model.attention_score, "How a query and a key are compared");
  options.add("model_max_length", model.max_length, "Positions: tokens of the longest sequence");
  return preset_option;
}

void define_train_options(OptionSet& options, TrainOptions& train) {
  define_data(options, train);
  define_tokenizer(options, train);
  define_model_options(options, train.preset, train.model);
  define_regularization(options, train.regularization);
  define_batches(options, train);
  define_optimizer(options, train);
  define_validation(options, train);
  define_run(options, train);
}

}  // namespace attend
