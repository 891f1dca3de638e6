#pragma once

#include <string_view>

namespace attend {

/// The version of the library and of the command; the same as the project's in CMakeLists.txt.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace attend
