#include "attend/cli/translator_options.h"

namespace attend {

void define_translator_options(OptionSet& options, TranslatorOptions& translator) {
  SearchOptions& search = translator.search;
  options.group("Search");
  options.add("beam_size", search.beam_size, "Hypotheses kept; 1 is greedy search").quality();
  options.add("length_penalty", search.length_penalty, "Alpha: larger ones favour longer text")
      .quality();
  options
      .add("max_extra_length", search.max_extra_length,
           "Tokens that a translation may have more than its sentence")
      .quality();
  options.add("n_best", search.n_best, "Translations a line, at most beam_size");
  options.group("Speed and memory");
  options.add("batch_tokens", search.batch_tokens,
              "Source tokens that a worker searches at once; it does not change the result");
  options.add("workers", translator.workers, "Threads; 0 is one a core");
  options
      .add("precision", translator.precision,
           "Of matrix products; auto is int8 for a converted model, else bfloat16 where the CPU has it")
      .quality();
}

}  // namespace attend
