#include "attend/cli/option_types.h"

#include <charconv>
#include <cmath>

namespace attend {
namespace {

template <typename Number>
void read_number(const std::string& text, Number& value) {
  Number read = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, read);
  if (error != std::errc() || end != last || !std::isfinite(read)) {
    fail_usage("found \"{}\", expected a number", text);
  }
  value = read;
}

}  // namespace

void read_value(const std::string& text, bool& value) {
  if (text != "true" && text != "false") {
    fail_usage("found \"{}\", expected true or false", text);
  }
  value = text == "true";
}

void read_value(const std::string& text, int64_t& value) { value = parse_count(text); }

void read_value(const std::string& text, uint64_t& value) {
  uint64_t read = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, read);
  if (error != std::errc() || end != last) {
    fail_usage("found \"{}\", expected a whole number from 0 to {}", text, UINT64_MAX);
  }
  value = read;
}

void read_value(const std::string& text, float& value) { read_number(text, value); }
void read_value(const std::string& text, double& value) { read_number(text, value); }
void read_value(const std::string& text, std::string& value) { value = text; }
void read_value(const std::string& text, TrainLimit& value) { value = parse_train_limit(text); }

void read_value(const std::string& text, MemoryLimit& value) { value = parse_memory_limit(text); }

void read_value(const std::string& text, std::optional<double>& value) {
  if (text == "auto") {
    value.reset();
  } else {
    read_number(text, value.emplace());
  }
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return fmt::format("{}", value); }
std::string text_of(uint64_t value) { return fmt::format("{}", value); }
std::string text_of(float value) { return fmt::format("{}", value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const TrainLimit& value) { return to_string(value); }
std::string text_of(const MemoryLimit& value) { return to_string(value); }
std::string text_of(const std::optional<double>& value) { return value ? text_of(*value) : "auto"; }

std::string type_name(const bool&) { return ""; }
std::string type_name(const int64_t&) { return "N"; }
std::string type_name(const uint64_t&) { return "N"; }
std::string type_name(const float&) { return "NUMBER"; }
std::string type_name(const double&) { return "NUMBER"; }
std::string type_name(const std::string&) { return "TEXT"; }
std::string type_name(const TrainLimit&) { return "AMOUNT"; }
std::string type_name(const MemoryLimit&) { return "SIZE"; }
std::string type_name(const std::optional<double>&) { return "NUMBER"; }

}  // namespace attend
