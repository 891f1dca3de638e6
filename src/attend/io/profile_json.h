#pragma once

#include <vector>
#include <nlohmann/json.hpp>

#include "attend/base/profile.h"

namespace attend {

/// A profile for machines: an array with an object for each row, whose name stands under
/// `name_key`.
inline nlohmann::ordered_json profile_json(const std::vector<ProfileRow>& rows,
                                           const char* name_key = "name") {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ProfileRow& row : rows) {
    json.push_back({{name_key, row.name},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes}});
  }
  return json;
}

}  // namespace attend
