#pragma once

#include <cstdint>
#include <string>

namespace attend {

/// How far the text of corpora is read.
struct CorpusProgress {
  int64_t pairs = 0;         ///< read so far
  double share = 0;          ///< of the text's bytes, as they lie on the disk
  double seconds_left = -1;  ///< below 0: not known yet
};

/// "reading the training text: 4900000 pairs, 12.3%, 6 min left"
std::string to_string(const CorpusProgress& progress);

}  // namespace attend
