#pragma once

#include <cstddef>
#include <string_view>

namespace attend {

/// A file of report/page, or Chart.js, as it was when attend was built (cmake/EmbedText.cmake).
struct PagePart {
  std::string_view name;
  std::string_view text;
};

extern const PagePart kPageParts[];
extern const std::size_t kPagePartCount;

}  // namespace attend
