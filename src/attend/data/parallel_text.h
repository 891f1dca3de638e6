#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/text.h"

namespace attend {

/// Where one parallel corpus is: two files with a line a sentence each, or one TSV with a source, a
/// tab and a target a line. Each may be gzip.
struct ParallelFiles {
  std::string source = {};
  std::string target = {};
  std::string tsv = {};  ///< instead of the two
  /// How often a pair of this corpus comes in an epoch, on average; see ParallelCorpus. From 0.001
  /// to 1000: with less, many epochs have no pair.
  double weight = 1.0;
  static constexpr double kLeastWeight = 1e-3, kLargestWeight = 1e3;

  /// "a.en and a.de", or the TSV's name.
  std::string name() const;
  /// The files: two, or the TSV alone.
  std::vector<std::string> paths() const;
  /// Text for training is read more than once, and again when a run is resumed: throws Error for
  /// standard input, a pipe or a device. Opens nothing.
  void refuse_pipes() const;
  /// The same for a file that cannot be opened or does not start as text does. Reads no more than a
  /// line of each.
  void check() const;
};

/// What text is read for. Text to learn from is read more than once and must be text: pipes and
/// binary files are refused. Text to work on is read once, and carried whatever it is.
enum class TextUse { kLearning, kWork };

/// Reads a parallel corpus pair by pair (contract 8).
class ParallelReader {
 public:
  /// `skip_bad_lines`: leave out and count TSV lines without exactly one tab. Throws Error, of text
  /// to learn from, as ParallelFiles::refuse_pipes.
  ParallelReader(const ParallelFiles& files, bool skip_bad_lines, TextUse use = TextUse::kLearning);

  /// The next pair; false at the end. Throws Error: one file has more lines than the other (naming
  /// both files and both counts), or a TSV line without exactly one tab (naming file and line).
  bool next(std::string& source, std::string& target);
  /// TSV lines left out so far.
  int64_t bad_lines() const { return bad_lines_; }
  /// How many bytes of all files, as they lie on the disk, have been used so far.
  int64_t bytes_read() const;

 private:
  bool next_of_two(std::string& source, std::string& target);
  bool next_of_tsv(std::string& source, std::string& target);

  bool skip_bad_lines_;
  int64_t bad_lines_ = 0;
  std::unique_ptr<LineReader> source_;  ///< or the TSV
  std::unique_ptr<LineReader> target_;
};

/// The lines of a parallel corpus as text, all of them, as validation translates and compares them.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;
};
ParallelText read_parallel_text(const ParallelFiles& files, bool skip_bad_lines = false);

}  // namespace attend
