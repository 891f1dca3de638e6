#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace attend {

/// The page that shows `data`, whose texts may hold anything.
std::string page_of(const std::string& title, const nlohmann::ordered_json& data);

/// The JSON as it can stand in an HTML element: no '<', '>' or '&'. What is no UTF-8 becomes
/// U+FFFD.
std::string json_for_html(const nlohmann::ordered_json& data);

}  // namespace attend
