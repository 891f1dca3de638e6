#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace attend {

/// Text of a hostile file for a message, as a JSON string: control characters and broken UTF-8 do
/// not reach the terminal, and no more than about `most` bytes do.
inline std::string shown(std::string_view text, std::size_t most = 80) {
  using Json = nlohmann::json;
  const std::string_view end = text.size() > most ? "…" : "";
  return Json(text.substr(0, most)).dump(-1, ' ', true, Json::error_handler_t::replace) +
         std::string(end);
}

/// What the JSON parser found wrong, as tame as the above.
inline std::string shown(const nlohmann::json::exception& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.size(), what.find("] ") + 2));  // "[json.exception....] "
  constexpr std::size_t kMost = 160;
  std::string text(what.substr(0, kMost));
  for (char& each : text) {
    if (each < ' ' || each > '~') each = '?';
  }
  return text;
}

}  // namespace attend
