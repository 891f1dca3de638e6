#include "attend/c_api.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/log_level.h"
#include "attend/base/version.h"
#include "attend/c_api/boundary.h"
#include "attend/cli/option_set.h"
#include "attend/cli/translator_options.h"
#include "attend/search/translator.h"
#include "attend/tensor/tensor.h"

// NOLINTBEGIN(readability-identifier-naming): the names of C.

struct attend_options {
  attend_options() { attend::define_translator_options(set, values); }
  attend_options(const attend_options&) = delete;
  attend_options& operator=(const attend_options&) = delete;
  ~attend_options() = default;

  attend::TranslatorOptions values;
  attend::OptionSet set;
};

struct attend_translator {
  attend_translator(const char* directory, const attend::TranslatorOptions& options)
      : translator(directory, options), precision(attend::name_of(translator.precision())) {}

  attend::Translator translator;
  std::string precision;
};

struct attend_translation {
  attend::Translation value;
};

struct attend_translations {
  std::vector<attend_translation> lines;
};

// NOLINTEND(readability-identifier-naming)

namespace attend {
namespace {

thread_local std::string last_error;
thread_local const char* last_message = "";

/// `from` to `to` as far as the caller's struct goes.
void give(const TranslationCounts& from, attend_counts* to) {
  if (to == nullptr) return;
  attend_counts all = ATTEND_COUNTS_INIT;
  all.lines = from.lines;
  all.blank = from.blank;
  all.repaired = from.repaired;
  all.split = from.split;
  all.source_tokens = from.source_tokens;
  all.target_tokens = from.target_tokens;
  all.struct_size = to->struct_size;
  std::memcpy(to, &all, std::min(to->struct_size, sizeof(all)));
}

void check(const attend_counts* counts) {
  if (counts != nullptr && counts->struct_size < sizeof(counts->struct_size)) {
    fail_usage("counts: struct_size is {}; start with ATTEND_COUNTS_INIT", counts->struct_size);
  }
}

std::vector<std::string> to_strings(const char* const* lines, const std::size_t* lengths,
                                    std::size_t count) {
  std::vector<std::string> strings;
  strings.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = lengths != nullptr ? lengths[i] : 0;
    if (lines[i] == nullptr && (lengths == nullptr || length > 0)) {
      fail_usage("lines[{}] is NULL", i);
    }
    if (lengths == nullptr) {
      strings.emplace_back(lines[i]);
    } else {
      strings.emplace_back(length > 0 ? lines[i] : "", length);
    }
  }
  return strings;
}

const Alternative* find(const attend_translation* translation, std::size_t rank) {
  if (rank >= attend_translation_count(translation)) return nullptr;
  return &translation->value.alternatives[rank];
}

/// The lines that a callback gives.
NextLine lines_of(attend_read_line read, void* user) {
  return [=](std::string& line) {
    const char* text = nullptr;
    std::size_t length = 0;
    const int found = read(user, &text, &length);
    if (found < 0) throw Cancelled();
    if (found == 0) return false;
    if (text == nullptr && length > 0) fail_usage("read gave {} bytes at NULL", length);
    line.assign(length > 0 ? text : "", length);
    return true;
  };
}

}  // namespace

attend_status report(attend_status status, std::string_view message) noexcept {
  try {
    last_error = message;
    last_message = last_error.c_str();
  } catch (const std::exception&) {
    last_message = "out of memory, even for the message of an error";
  }
  return status;
}

}  // namespace attend

using attend::guarded;
using attend::require;

const char* attend_version(void) { return attend::kVersion.data(); }

const char* attend_last_error(void) { return attend::last_message; }

void attend_set_quiet(int quiet) {
  guarded([&] {
    attend::set_log_level(quiet != 0 ? attend::LogLevel::kQuiet : attend::LogLevel::kNormal);
  });
}

// ------------------------------------------------------------------------------ options

attend_status attend_options_new(attend_options** options) {
  return guarded([&] {
    require(options, "options");
    *options = new attend_options();
  });
}

void attend_options_free(attend_options* options) { delete options; }

attend_status attend_options_set(attend_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options, "options");
    require(name, "name");
    require(value, "value");
    options->set.apply({{{.name = name, .values = {value}, .origin = name}}});
  });
}

attend_status attend_options_add(attend_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options, "options");
    require(name, "name");
    require(value, "value");
    const attend::Option* option = options->set.find(name);
    std::vector<std::string> values;
    if (option != nullptr && option->is_list) values = option->get();
    values.emplace_back(value);
    options->set.apply({{{.name = name, .values = values, .origin = name}}});
  });
}

// ------------------------------------------------------------------------------ translators

attend_status attend_translator_open(const char* directory, const attend_options* options,
                                     attend_translator** translator) {
  return guarded([&] {
    require(directory, "directory");
    require(translator, "translator");
    const attend::TranslatorOptions defaults;
    *translator = new attend_translator(directory, options != nullptr ? options->values : defaults);
  });
}

void attend_translator_close(attend_translator* translator) { delete translator; }

int64_t attend_translator_workers(const attend_translator* translator) {
  return translator != nullptr ? translator->translator.workers() : 0;
}

const char* attend_translator_precision(const attend_translator* translator) {
  return translator != nullptr ? translator->precision.c_str() : "";
}

// ------------------------------------------------------------------------------ translating

attend_status attend_translate(const attend_translator* translator, const char* const* lines,
                               const size_t* lengths, size_t count,
                               attend_translations** translations, attend_counts* counts) {
  return guarded([&] {
    require(translator, "translator");
    require(translations, "translations");
    if (count > 0) require(lines, "lines");
    attend::check(counts);
    attend::TranslationCounts found;
    auto made = std::make_unique<attend_translations>();
    made->lines.reserve(count);
    for (attend::Translation& each :
         translator->translator.translate(attend::to_strings(lines, lengths, count), &found)) {
      made->lines.push_back({std::move(each)});
    }
    attend::give(found, counts);
    *translations = made.release();
  });
}

attend_status attend_translate_stream(const attend_translator* translator, attend_read_line read,
                                      attend_take_translation take, void* user,
                                      attend_counts* counts) {
  return guarded([&] {
    require(translator, "translator");
    require(read, "read");
    require(take, "take");
    attend::check(counts);
    const auto sink = [&](const attend::Translation& each) {
      const attend_translation translation{each};
      if (take(user, &translation) != 0) throw attend::Cancelled();
    };
    const attend::TranslationCounts found =
        translator->translator.translate_stream(attend::lines_of(read, user), sink);
    attend::give(found, counts);
  });
}

// ------------------------------------------------------------------------------ translations

void attend_translations_free(attend_translations* translations) { delete translations; }

size_t attend_translations_count(const attend_translations* translations) {
  return translations != nullptr ? translations->lines.size() : 0;
}

const attend_translation* attend_translations_at(const attend_translations* translations,
                                                 size_t index) {
  if (translations == nullptr || index >= translations->lines.size()) return nullptr;
  return &translations->lines[index];
}

size_t attend_translation_count(const attend_translation* translation) {
  return translation != nullptr ? translation->value.alternatives.size() : 0;
}

const char* attend_translation_text(const attend_translation* translation, size_t rank,
                                    size_t* length) {
  const attend::Alternative* found = attend::find(translation, rank);
  if (length != nullptr) *length = found != nullptr ? found->text.size() : 0;
  return found != nullptr ? found->text.c_str() : nullptr;
}

double attend_translation_score(const attend_translation* translation, size_t rank) {
  const attend::Alternative* found = attend::find(translation, rank);
  return found != nullptr ? found->score : std::numeric_limits<double>::quiet_NaN();
}

double attend_translation_log_prob(const attend_translation* translation, size_t rank) {
  const attend::Alternative* found = attend::find(translation, rank);
  return found != nullptr ? found->log_prob : std::numeric_limits<double>::quiet_NaN();
}

int64_t attend_translation_tokens(const attend_translation* translation, size_t rank) {
  const attend::Alternative* found = attend::find(translation, rank);
  return found != nullptr ? found->tokens : 0;
}
