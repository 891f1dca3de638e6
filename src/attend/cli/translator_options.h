#pragma once

#include "attend/cli/option_set.h"
#include "attend/search/translator.h"

namespace attend {

/// How to search, and with what speed and memory; over the fields of `translator`.
void define_translator_options(OptionSet& options, TranslatorOptions& translator);

}  // namespace attend
