#include "attend/cli/nbest_list.h"

#include <charconv>

#include "attend/base/error.h"
#include "attend/cli/answer_format.h"

namespace attend {
namespace {

/// Cuts off what stands before the first separator; false where there is none. A separator at the
/// line's end may have lost its last space.
bool cut_field(std::string_view& rest, std::string_view& field) {
  std::size_t at = rest.find(kFieldSeparator), size = kFieldSeparator.size();
  const std::string_view bare = kFieldSeparator.substr(0, size - 1);
  if (at == std::string_view::npos && rest.ends_with(bare)) {
    at = rest.size() - bare.size();
    size = bare.size();
  }
  if (at == std::string_view::npos) return false;
  field = rest.substr(0, at);
  rest.remove_prefix(at + size);
  return true;
}

bool read_index(std::string_view text, int64_t& index) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() && index >= 0;
}

}  // namespace

NBestReader::NBestReader(const std::string& lists, const std::string& sources)
    : lists_(lists), sources_(sources) {}

std::string NBestReader::where() const {
  return fmt::format("{}, line {}", lists_.name(), lists_.line_number());
}

bool NBestReader::next(NBestLine& line, std::string& source) {
  if (!lists_.next(line.whole)) return false;
  std::string_view rest = line.whole, index, text;
  if (!cut_field(rest, index) || !read_index(index, line.index)) {
    fail("{}: expected \"INDEX ||| TEXT\", with the number of the sentence from 0 as INDEX",
         where());
  }
  line.text = cut_field(rest, text) ? text : rest;
  find_source(line.index);
  source = source_;
  return true;
}

void NBestReader::find_source(int64_t index) {
  if (index + 1 < sources_.line_number()) {
    fail("{}: index {} behind {}; expected the lists in the order of their sentences", where(),
         index, sources_.line_number() - 1);
  }
  while (sources_.line_number() < index + 1) {
    if (sources_.next(source_)) continue;
    fail("{}: index {}, but {} has {} lines, which are counted from 0", where(), index,
         sources_.name(), sources_.line_number());
  }
}

}  // namespace attend
