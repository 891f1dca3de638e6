#pragma once

#include <string>
#include <vector>

#include "attend/metrics/score.h"

namespace attend {

/// What suggests that a text is not what its readers would see, so that its scores do not compare
/// with published ones: tokenized text, subword pieces, escapes of tokenizers, tabs, bad UTF-8. A
/// sentence each, such as `2004 of 3004 lines end in " .", as tokenized text does; the first is
/// line 2`.
std::vector<std::string> suspicions_about(const Lines& lines);

}  // namespace attend
