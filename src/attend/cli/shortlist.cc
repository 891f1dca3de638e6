#include "attend/search/shortlist.h"

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/data/corpus.h"
#include "attend/io/model_directory.h"

namespace attend {
namespace {

class ShortlistCommand : public Command {
 public:
  std::string_view name() const override { return "shortlist"; }
  std::string_view summary() const override {
    return "Learn which target tokens translate which source tokens, to translate faster";
  }
  std::string_view details() const override {
    return "The text is what the model was trained on, or some of it. IBM Model 1 finds the target "
           "tokens that\neach source token is most often translated by; translating with "
           "--shortlist FILE then scores, for each\nsentence, those of its tokens and those that "
           "are frequent anyway, and no others.\n\n"
           "Example\n  attend shortlist --model runs/m30k --source train.en --target train.de\n"
           "  attend translate --model runs/m30k --shortlist runs/m30k/shortlist.safetensors < "
           "test.en";
  }
  void define(OptionSet& options) override {
    options.group("Text");
    options.add("model", model_, "A model folder, or the folder of a run, for its tokenizers")
        .positional()
        .metavar("DIR");
    options.add("source", source_, "Source side of the text; .gz or not").metavar("FILE");
    options.add("target", target_, "Target side, a line for each line").metavar("FILE");
    options.add("tsv", tsv_, "The text as source TAB target").metavar("FILE");
    options.add("skip_bad_lines", corpus_.skip_bad_lines,
                "Leave out and count lines of a TSV without exactly one tab");
    options
        .add("output", output_,
             "Where it goes; without it, shortlist.safetensors in the model's folder")
        .metavar("FILE");
    options.group("Shortlist");
    options.add("candidates", shortlist_.candidates, "Target tokens for each source token");
    options.add("frequent", shortlist_.frequent,
                "Target tokens for every sentence: the most frequent ones");
    options.add("iterations", shortlist_.iterations, "Of IBM Model 1");
  }
  void resolve(const OptionSet& options, const Assignments& config,
               const Assignments& flags) override {
    Command::resolve(options, config, flags);
    shortlist_.validate();
  }
  void require() const override;
  void run(const OptionSet&) override;

 private:
  std::string output() const {
    return output_.empty() ? (Path(model_) / kShortlistFile).string() : output_;
  }

  std::string model_, source_, target_, tsv_, output_;
  CorpusOptions corpus_;
  ShortlistOptions shortlist_;
};

void ShortlistCommand::require() const {
  if (model_.empty()) {
    fail_usage("--model DIR is missing: a model folder, or the folder of a run");
  }
  const bool two = !source_.empty() && !target_.empty();
  const bool any = !source_.empty() || !target_.empty();
  if (tsv_.empty() ? !two : any) {
    fail_usage("expected --source FILE and --target FILE, or --tsv FILE: the text to learn from");
  }
  std::vector<std::string> read = files_of_model(model_);
  for (const std::string& file : {source_, target_, tsv_}) {
    if (!file.empty()) read.push_back(file);
  }
  refuse_to_overwrite(output(), read);
}

void ShortlistCommand::run(const OptionSet&) {
  const ModelFiles files = load_model_directory(model_);
  const Tokenizer& source = *files.source_tokenizer;
  const Tokenizer& target = *files.target_tokenizer;
  corpus_.corpora = {{.source = source_, .target = target_, .tsv = tsv_}};
  const ParallelCorpus corpus = ParallelCorpus::load(corpus_, source, target);
  logger().info("{}: {}", corpus.parts().front().name, corpus.report().to_string());
  const Shortlist shortlist = Shortlist::learn(corpus, source, target, shortlist_);
  shortlist.save(output(), source, target);
  logger().info("{}: {} candidates for {} source tokens, and {} for every sentence", output(),
                shortlist.candidate_count(), shortlist.source_vocabulary(),
                shortlist.frequent().size());
}

}  // namespace

std::unique_ptr<Command> make_shortlist_command() { return std::make_unique<ShortlistCommand>(); }

}  // namespace attend
