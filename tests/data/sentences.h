#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sentencepiece_trainer.h>

namespace attend {

/// Lines for a trainer of SentencePiece.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return position_ == lines_.size(); }
  void Next() override { ++position_; }
  const std::string& value() const override { return lines_[position_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  std::size_t position_ = 0;
};

}  // namespace attend
