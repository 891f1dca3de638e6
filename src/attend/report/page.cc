#include "attend/report/page.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "attend/base/error.h"
#include "attend/report/page_parts.h"

namespace attend {
namespace {

std::string_view part(std::string_view name) {
  const std::span parts(kPageParts, kPagePartCount);
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const PagePart& each) { return each.name == name; });
  if (found == parts.end()) fail("the report has no part {}", name);
  return found->text;
}

std::string replace_each(std::string_view text, const std::map<char, std::string_view>& by) {
  std::string replaced;
  replaced.reserve(text.size());
  for (const char c : text) {
    const auto found = by.find(c);
    if (found == by.end()) {
      replaced += c;
    } else {
      replaced += found->second;
    }
  }
  return replaced;
}

}  // namespace

std::string json_for_html(const nlohmann::ordered_json& data) {
  // They stand in strings alone, where JSON can spell them otherwise.
  return replace_each(data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                      {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}});
}

std::string page_of(const std::string& title, const nlohmann::ordered_json& data) {
  std::string page;
  // One pass: what is put in is not searched for marks.
  std::string_view rest = part("report.html");
  for (std::size_t begin; (begin = rest.find("{{")) != std::string_view::npos;) {
    page += rest.substr(0, begin);
    const std::size_t end = rest.find("}}", begin);
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    if (name == "title") {
      page += replace_each(title, {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}});
    } else if (name == "data") {
      page += json_for_html(data);
    } else {
      page += part(name);
    }
    rest.remove_prefix(end + 2);
  }
  return page.append(rest);
}

}  // namespace attend
