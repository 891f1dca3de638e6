#include "attend/cli/translator_options.h"

namespace attend {
namespace {

void define_search(OptionSet& options, SearchOptions& search) {
  options.group("Search");
  options.add("beam_size", search.beam_size, "Hypotheses kept; 1 is greedy search").quality();
  options.add("n_best", search.n_best, "Translations a line, at most beam_size unless sampling");
  options.add("length_penalty", search.length_penalty, "Alpha: larger ones favour longer text")
      .quality();
  options
      .add("max_extra_length", search.max_extra_length,
           "Tokens that a translation may have more than its sentence")
      .quality();
  options.add("length_penalty_kind", search.length_penalty_kind,
              "What log P is divided by: gnmt ((5 + |Y|) / 6)^alpha, average |Y|, none 1");
  options
      .add(
          "stopping", search.stopping,
          "When no hypothesis is likely to win any more, is certain not to, or the first beam_size "
          "are finished")
      .quality();
  options.add("max_length", search.max_length, "Tokens of a translation at most; 0 is no limit");
  options.add("min_length", search.min_length, "Tokens of a translation at least");
  options.add("coverage_penalty", search.coverage_penalty,
              "Beta: larger ones favour translations that attend to the whole sentence");
}

void define_rules(OptionSet& options, TranslatorOptions& translator) {
  SearchOptions& search = translator.search;
  options.group("What is put out");
  options.add("repetition_penalty", search.repetition_penalty,
              "Log P of a token that the translation has already counts so many times");
  options.add("no_repeat_ngram_size", search.no_repeat_ngram_size,
              "No so many tokens in a row come twice; 0 is off");
  options
      .add("suppress", translator.suppress,
           "Words or phrases that never come, or pieces of the vocabulary that begin with U+2581")
      .metavar("TEXT");
}

void define_variety(OptionSet& options, SearchOptions& search) {
  options.group("Variety");
  options.add("beam_groups", search.beam_groups,
              "Diverse beam search: the beam in so many groups that avoid each other's tokens");
  options.add("diversity_strength", search.diversity_strength,
              "What a token costs for each time that earlier groups take it");
  options.add("sampling", search.sampling, "Draw n_best translations instead of searching");
  options.add("temperature", search.temperature,
              "Of sampling: below 1 likely tokens are drawn more often, above 1 less");
  options.add("sampling_top_k", search.sampling_top_k,
              "Draw among so many best tokens alone; 0 is all");
  options.add("sampling_top_p", search.sampling_top_p,
              "Draw among the fewest best tokens that have this probability together");
  options.add("seed", search.seed, "Of sampling: same seed and sentence, same translations");
}

}  // namespace

void define_translator_options(OptionSet& options, TranslatorOptions& translator) {
  SearchOptions& search = translator.search;
  define_search(options, search);
  define_rules(options, translator);
  define_variety(options, search);
  options.group("Speed and memory");
  options
      .add("shortlist", translator.shortlist,
           "Of attend shortlist: translations are made of the tokens it lists for a sentence")
      .metavar("FILE")
      .quality();
  options.add("batch_tokens", search.batch_tokens,
              "Source tokens that a worker searches at once; 0 is by the model's size; it does not "
              "change the result");
  options.add("workers", translator.workers, "Threads; 0 is one a core");
  options
      .add("precision", translator.precision,
           "Of matrix products; auto is int8 for a converted model, else bfloat16 where that "
           "is faster")
      .quality();
}

}  // namespace attend
