#include "attend/data/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/data/text.h"
#include "attend/data/utf8.h"

namespace attend {
namespace {

class TokenizerTrainCommand : public Command {
 public:
  std::string_view name() const override { return "tokenizer train"; }
  std::string_view summary() const override {
    return "Train a SentencePiece tokenizer on text files; several files share one vocabulary";
  }
  std::string_view details() const override {
    return "Text is not normalised, and characters without a piece of their own are carried as "
           "bytes, so that\nencoding and decoding gives back every text.";
  }

  void define(OptionSet& options) override {
    options.add("input", input_, "Text, one sentence a line; .gz or not; - is standard input")
        .positional()
        .metavar("FILE");
    options.add("output", output_, "Where the tokenizer goes; - is standard output")
        .metavar("FILE");
    options.add("vocabulary_size", training_.vocabulary_size,
                "Pieces, the special tokens and 256 bytes included");
    options.add("subword_model", training_.subword_model, "How pieces are found");
    options.add("character_coverage", training_.character_coverage,
                "Share of the characters of the text that become pieces");
    options.add("tokenizer_sample", training_.max_sentences,
                "Sentences that it is trained on, at most; of more, a random sample is drawn");
    options.add("seed", training_.seed, "Of that sample");
  }

  void require() const override {
    if (input_.empty()) fail_usage("--input FILE is missing: the text to train on");
    if (output_.empty()) fail_usage("--output FILE is missing: where the tokenizer goes");
    refuse_to_overwrite(output_, input_);
  }

  void run(const OptionSet&) override {
    const Tokenizer tokenizer = Tokenizer::train(training_, input_);
    Output output(output_);
    output.write(tokenizer.serialized());
    output.finish();
    logger().info("{}: {} pieces", output_, tokenizer.vocabulary_size());
  }

 private:
  std::vector<std::string> input_;
  std::string output_;
  TokenizerTrainingOptions training_;
};

/// What encode and decode have in common: lines in, lines out, each as soon as it is there.
class TokenizerStreamCommand : public Command {
 public:
  void define(OptionSet& options) override {
    options.add("tokenizer", tokenizer_, "A SentencePiece model").positional().metavar("FILE");
    options.add("input", input_, "- is standard input; .gz or not").metavar("FILE");
    options.add("output", output_, "- is standard output").metavar("FILE");
    options.add("ids", ids_, "Numbers of pieces instead of pieces");
  }

  void require() const override {
    if (tokenizer_.empty()) fail_usage("--tokenizer FILE is missing: a SentencePiece model");
    refuse_to_overwrite(output_, {tokenizer_, input_});
  }

  void run(const OptionSet&) override {
    const Tokenizer tokenizer = Tokenizer::load(tokenizer_);
    LineReader reader(input_);
    Output output(output_);
    std::string line;
    prepare(tokenizer);
    while (reader.next(line)) {
      output.write_line(
          convert(tokenizer, line, fmt::format("{}:{}", reader.name(), reader.line_number())));
      output.flush();
    }
    output.finish();
  }

 protected:
  virtual void prepare(const Tokenizer&) {}
  virtual std::string convert(const Tokenizer& tokenizer, const std::string& line,
                              const std::string& place) const = 0;
  bool ids() const { return ids_; }

 private:
  std::string tokenizer_;
  std::string input_ = "-";
  std::string output_ = "-";
  bool ids_ = false;
};

class TokenizerEncodeCommand : public TokenizerStreamCommand {
 public:
  std::string_view name() const override { return "tokenizer encode"; }
  std::string_view summary() const override {
    return "Cut lines of text into pieces with spaces between them";
  }

 protected:
  std::string convert(const Tokenizer& tokenizer, const std::string& line,
                      const std::string& place) const override {
    const RepairedText repaired = repair_utf8(line);
    if (repaired.changed) logger().warn("{}: not UTF-8; what is not became U+FFFD", place);
    std::string text;
    for (const int32_t id : tokenizer.encode(repaired.text)) {
      if (!text.empty()) text += ' ';
      text += ids() ? std::to_string(id) : tokenizer.piece(id);
    }
    return text;
  }
};

class TokenizerDecodeCommand : public TokenizerStreamCommand {
 public:
  std::string_view name() const override { return "tokenizer decode"; }
  std::string_view summary() const override {
    return "Put lines of pieces together to lines of text";
  }

 protected:
  void prepare(const Tokenizer& tokenizer) override {
    const auto size = static_cast<int32_t>(tokenizer.vocabulary_size());
    for (int32_t id = 0; id < size; ++id) id_of_piece_.emplace(tokenizer.piece(id), id);
  }

  std::string convert(const Tokenizer& tokenizer, const std::string& line,
                      const std::string& place) const override {
    std::vector<int32_t> tokens;
    std::string_view rest = line;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (end > 0) tokens.push_back(id_of(tokenizer, std::string(rest.substr(0, end)), place));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::string text = tokenizer.decode(tokens);
    // Pieces for bytes can spell a line end; a line stays a line (contract 1).
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

 private:
  int32_t id_of(const Tokenizer& tokenizer, const std::string& word,
                const std::string& place) const {
    if (!ids()) {
      const auto found = id_of_piece_.find(word);
      if (found == id_of_piece_.end()) {
        fail("{}: the tokenizer has no piece \"{}\"; for numbers use --ids", place, word);
      }
      return found->second;
    }
    int32_t id = -1;
    const char* const last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data(), last, id);
    if (error != std::errc() || end != last || id < 0 || id >= tokenizer.vocabulary_size()) {
      fail("{}: found \"{}\", expected numbers from 0 to {}", place, word,
           tokenizer.vocabulary_size() - 1);
    }
    return id;
  }

  std::unordered_map<std::string, int32_t> id_of_piece_;
};

}  // namespace

std::unique_ptr<Command> make_tokenizer_train_command() {
  return std::make_unique<TokenizerTrainCommand>();
}
std::unique_ptr<Command> make_tokenizer_encode_command() {
  return std::make_unique<TokenizerEncodeCommand>();
}
std::unique_ptr<Command> make_tokenizer_decode_command() {
  return std::make_unique<TokenizerDecodeCommand>();
}

}  // namespace attend
