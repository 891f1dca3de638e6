#include "attend/cli/sweep_data.h"

#include <filesystem>
#include <initializer_list>

#include "attend/base/files.h"
#include "attend/cli/sweep_file.h"
#include "attend/cli/train_options.h"
#include "attend/data/fingerprint.h"
#include "attend/io/model_directory.h"
#include "attend/train/training_data.h"

namespace attend {
namespace {

std::string key_of(const OptionSet& options, std::initializer_list<const char*> names) {
  Fingerprint fingerprint;
  for (const char* name : names) {
    for (const std::string& value : options.find(name)->get()) {
      fingerprint.add(fmt::format("{}={}\n", name, value));
    }
  }
  return fingerprint.hex();
}

/// Of all that the tokenizers are a function of, but for what is in the files.
std::string tokenizer_key(TrainOptions train) {
  OptionSet options;
  define_train_options(options, train);
  return key_of(options, {"train_source", "train_target", "train_tsv", "skip_bad_lines",
                          "vocabulary_size", "subword_model", "joint_vocabulary",
                          "character_coverage", "tokenizer_sample", "seed"});
}

}  // namespace

void check_files(const TrainOptions& train, bool has_begun) {
  check_texts(train);
  if (has_begun) return;  // the run has tokenizers of its own, and may have a cache of its text
  for (const ParallelFiles& files : training_corpus(train).corpora) files.check();
  for (const std::string& file :
       {train.tokenizer, train.source_tokenizer, train.target_tokenizer}) {
    if (!file.empty()) Tokenizer::load(file);
  }
}

void share_tokenizer(const std::string& folder, TrainOptions& train,
                     const std::atomic<bool>& stop) {
  if (!train.tokenizer.empty() || !train.source_tokenizer.empty()) return;
  const Path shared = Path(folder) / kSweepTokenizers / tokenizer_key(train);
  const auto name = [&](const char* file) { return (shared / file).string(); };
  const std::string joint = name(kTokenizerFile), source = name(kSourceTokenizerFile),
                    target = name(kTargetTokenizerFile);
  std::error_code error;
  if (!std::filesystem::exists(train.joint_vocabulary ? joint : target, error)) {
    const Tokenizers made = make_tokenizers(train, &stop);
    ensure_directory(shared);
    write_file(train.joint_vocabulary ? joint : source, made.source->serialized());
    if (!train.joint_vocabulary) write_file(target, made.target->serialized());
  }
  if (train.joint_vocabulary) {
    train.tokenizer = joint;
  } else {
    train.source_tokenizer = source;
    train.target_tokenizer = target;
  }
}

std::string data_key(const OptionSet& options) {
  return key_of(
      options, {"skip_bad_lines", "max_length", "max_length_ratio", "model_max_length", "tokenizer",
                "source_tokenizer", "target_tokenizer", "vocabulary_size", "subword_model",
                "joint_vocabulary", "character_coverage", "tokenizer_sample", "seed"});
}

}  // namespace attend
