#pragma once

#include <cstdint>
#include <string>

#include "attend/data/text.h"

namespace attend {

/// A line of an n-best list as Moses and `attend translate --n-best` write it: "INDEX ||| TEXT",
/// and maybe more fields.
struct NBestLine {
  int64_t index = 0;  ///< of the sentence, from 0
  std::string text;
  std::string whole;  ///< as it was read
};

/// Reads n-best lists together with the sentences that they are of.
class NBestReader {
 public:
  /// "-" is standard input.
  NBestReader(const std::string& lists, const std::string& sources);

  /// The next line and its sentence; false at the end. Throws Error naming file and line: not such
  /// a line, an index below the one before it, or one that the sources do not have.
  bool next(NBestLine& line, std::string& source);
  /// "list, line 3", for messages.
  std::string where() const;

 private:
  void find_source(int64_t index);

  LineReader lists_;
  LineReader sources_;
  std::string source_;  ///< the last one read
};

}  // namespace attend
