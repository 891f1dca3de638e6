#include "attend/report/page.h"

#include <gtest/gtest.h>

#include "attend/base/files.h"
#include "attend/report/page_parts.h"

namespace attend {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count(std::string_view in, std::string_view text) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = in.find(text, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

/// What a browser reads as the page's data.
std::string data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script>", at) - at);
}

TEST(Page, HoldsNothingThatAnythingHasToBeFetchedFor) {
  const std::string page = page_of("a run", Json::object());
  for (const char* fetching : {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link"}) {
    EXPECT_EQ(count(page, fetching), 0U) << fetching;
  }
  EXPECT_EQ(count(page, "Content-Security-Policy"), 1U);
  EXPECT_EQ(count(page, "Chart.js v3"), 1U) << "with its licence's notice";
  EXPECT_EQ(count(page, "{{"), count(page_of("", Json::object()), "{{"));
}

TEST(Page, TextCannotEndTheScriptThatHoldsIt) {
  const std::string hostile =
      "</script><script>alert(1)</script><!-- <SCRIPT & \u2028 {{report.css}}";
  const Json data{{"runs", Json::array({hostile})}, {hostile, 1}};
  const std::string page = page_of(hostile, data);
  const std::string harmless = page_of("", Json::object());
  for (const char* mark : {"<script", "</script", "<!--", "<SCRIPT"}) {
    EXPECT_EQ(count(page, mark), count(harmless, mark)) << mark;
  }
  EXPECT_EQ(Json::parse(data_of(page)), data) << "and nothing of it is lost";
}

TEST(Page, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(json_for_html(Json{{"text",
                                "a\xff"
                                "b"}}),
            "{\"text\":\"a\uFFFDb\"}");
}

TEST(Page, ItsPartsAreTheFiles) {
  ASSERT_GT(kPagePartCount, 5U);
  for (std::size_t i = 0; i + 1 < kPagePartCount; ++i) {  // the last is Chart.js
    const Path path = Path(ATTEND_SOURCE_DIR "/src/attend/report/page") / kPageParts[i].name;
    EXPECT_EQ(kPageParts[i].text, read_file(path, 1 << 20)) << path;
  }
}

}  // namespace
}  // namespace attend
