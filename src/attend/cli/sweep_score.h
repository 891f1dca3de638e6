#pragma once

#include <optional>
#include <string>

#include "attend/base/files.h"
#include "attend/data/parallel_text.h"
#include "attend/train/options.h"

namespace attend {

/// A text that no row of a sweep is chosen by.
struct TestText {
  std::string source;
  std::string target;
  bool operator==(const TestText&) const = default;
};

/// It is read for each row. Throws Error: a file cannot be read, is no file, or is empty; the two
/// have not equally many lines.
ParallelText read_test_text(const TestText& text);

/// BLEU of a finished run's translations of a test text, as `attend translate` and `attend
/// evaluate` give it with the run's valid_beam_size and valid_length_penalty. The translations are
/// kept in the run's folder as `test.hyp`, the score with its signature as `test.json`; both are
/// made again only for another text or model. Throws Error.
double test_bleu(const TrainOptions& train, const TestText& text);

/// The score in `test.json`; nothing where there is none, or one of another model of the run, or of
/// another text than `text`, where that names one.
std::optional<double> recorded_test_bleu(const Path& run, const TestText& text);

}  // namespace attend
