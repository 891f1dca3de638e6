#pragma once

#include <atomic>
#include <string>

#include "attend/cli/option_set.h"
#include "attend/train/options.h"

namespace attend {

/// That a row can read what it names: its validation text and, unless its run has begun, its
/// training text and tokenizers. Of the training text it reads a line. Throws Error.
void check_files(const TrainOptions& train, bool has_begun);

/// Names the tokenizers in `train` that would be trained: rows that would train the same one share
/// it, in `folder`/tokenizers, where it is trained for the first of them. Throws as
/// make_tokenizers.
void share_tokenizer(const std::string& folder, TrainOptions& train, const std::atomic<bool>& stop);

/// Rows with the same key see the same pairs as the same tokens, where the text is the same.
std::string data_key(const OptionSet& options);

}  // namespace attend
