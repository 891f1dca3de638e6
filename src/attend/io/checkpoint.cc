#include "attend/io/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/base/version.h"
#include "attend/models/hostile_text.h"

namespace attend {
namespace {

constexpr const char* kFolder = "checkpoints";
constexpr std::string_view kNameBegin = "step-";
constexpr std::string_view kNameEnd = ".safetensors";
constexpr std::size_t kMaxStateBytes = 16 << 20;
constexpr int kMaxStateDepth = 64;

constexpr const char* kFormatKey = "checkpoint_format";
constexpr const char* kVersionKey = "attend_version";
constexpr const char* kStepKey = "step";
constexpr const char* kStateKey = "state";
constexpr int64_t kCheckpointFormat = 1;

/// Not damaged, and nothing to fall back from: to go on from an older one would lose work.
class NewerFormatError : public Error {
 public:
  using Error::Error;
};

const std::string& metadata_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    fail("{} is no checkpoint: its metadata has no {}", file.path().string(), key);
  }
  return found->second;
}

int64_t number_of(const SafetensorsFile& file, const char* key) {
  const std::string& text = metadata_of(file, key);
  int64_t number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ptr != text.data() + text.size() || parsed.ec != std::errc() || number < 0) {
    fail("{}: {} is {}; expected a whole number", file.path().string(), key, shown(text));
  }
  return number;
}

void check_format(const SafetensorsFile& file) {
  const int64_t format = number_of(file, kFormatKey);
  if (format <= kCheckpointFormat) return;
  const std::string version = shown(metadata_of(file, kVersionKey));
  throw NewerFormatError(fmt::format(
      "{}: written by attend {} in format {}, and this is attend {}, which reads formats up to {}; "
      "install attend {} or later to go on with this run",
      file.path().string(), version, format, kVersion, kCheckpointFormat, version));
}

nlohmann::json parse_state(const SafetensorsFile& file) {
  const std::string& text = metadata_of(file, kStateKey);
  if (text.size() > kMaxStateBytes) {
    fail("{}: the state has {} bytes; expected at most {}", file.path().string(), text.size(),
         kMaxStateBytes);
  }
  const auto bound_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxStateDepth) {
      fail("{}: the state nests deeper than {}", file.path().string(), kMaxStateDepth);
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, bound_depth);
  } catch (const nlohmann::json::exception& error) {
    fail("{}: the state is not valid JSON: {}", file.path().string(), shown(error));
  }
}

/// Later checkpoints than the one just written were not fit to go on from, or the run would have.
/// They must not count as the newest any more.
void set_later_ones_aside(const Path& run_directory, int64_t step) {
  for (const CheckpointFile& each : list_checkpoints(run_directory)) {
    if (each.step <= step) continue;
    Path aside = each.path;
    aside += ".damaged";
    std::error_code error;
    std::filesystem::rename(each.path, aside, error);
    if (error) fail_on_file("rename", each.path, error.value());
    logger().warn("{} is of a later step than the run has reached; renamed to {}",
                  each.path.string(), aside.filename().string());
  }
}

}  // namespace

Path checkpoint_path(const Path& run_directory, int64_t step) {
  return run_directory / kFolder / fmt::format("{}{:08}{}", kNameBegin, step, kNameEnd);
}

void save_checkpoint(const Path& run_directory, int64_t step, const NamedTensors& tensors,
                     const nlohmann::json& state,
                     const std::map<std::string, std::string>& metadata) {
  const Path path = checkpoint_path(run_directory, step);
  std::string text;
  try {
    text = state.dump();
  } catch (const nlohmann::json::exception& error) {
    fail("cannot write {}: its state is not valid UTF-8: {}", path.string(), shown(error));
  }
  if (text.size() > kMaxStateBytes) {
    fail("cannot write {}: its state has {} bytes, and at most {} are allowed", path.string(),
         text.size(), kMaxStateBytes);
  }
  ensure_directory(run_directory / kFolder);
  std::map<std::string, std::string> complete = {{kFormatKey, std::to_string(kCheckpointFormat)},
                                                 {kVersionKey, std::string(kVersion)},
                                                 {kStepKey, std::to_string(step)},
                                                 {kStateKey, std::move(text)}};
  complete.insert(metadata.begin(), metadata.end());
  write_safetensors(path, tensors, complete);
  set_later_ones_aside(run_directory, step);
}

std::vector<CheckpointFile> list_checkpoints(const Path& run_directory) {
  const Path folder = run_directory / kFolder;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) fail_on_file("read the folder", folder, error.value());

  std::vector<CheckpointFile> found;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= kNameBegin.size() + kNameEnd.size() || !name.starts_with(kNameBegin))
      continue;
    int64_t step = -1;
    std::from_chars(name.data() + kNameBegin.size(), name.data() + name.size(), step);
    const Path path = checkpoint_path(run_directory, step);
    if (step >= 0 && path.filename().string() == name) found.push_back({step, path});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& left, const auto& right) { return left.step < right.step; });
  return found;
}

bool is_checkpoint(const SafetensorsFile& file) {
  return file.metadata().contains(kFormatKey) && file.metadata().contains(kStateKey);
}

Checkpoint load_checkpoint(const Path& path) {
  SafetensorsFile file = SafetensorsFile::open(path);
  check_format(file);
  file.verify();
  const int64_t step = number_of(file, kStepKey);
  nlohmann::json state = parse_state(file);
  return {step, std::move(state), std::move(file)};
}

std::optional<Checkpoint> load_latest_checkpoint(const Path& run_directory) {
  const std::vector<CheckpointFile> files = list_checkpoints(run_directory);
  std::string newest_problem;
  for (auto each = files.rbegin(); each != files.rend(); ++each) {
    try {
      return load_checkpoint(each->path);
    } catch (const NewerFormatError&) {
      throw;
    } catch (const Error& error) {
      if (newest_problem.empty()) newest_problem = error.what();
      logger().warn("the checkpoint of step {} cannot be used: {}", each->step, error.what());
    }
  }
  if (files.empty()) return std::nullopt;
  fail(
      "none of the {} checkpoints in {} can be used; the newest: {}. Bring one back from a copy, "
      "or start another run with --run",
      files.size(), (run_directory / kFolder).string(), newest_problem);
}

void prune_checkpoints(const Path& run_directory, int64_t keep_last,
                       const std::set<int64_t>& keep) {
  const std::vector<CheckpointFile> files = list_checkpoints(run_directory);
  const auto count = static_cast<int64_t>(files.size());
  for (int64_t i = 0; i < count - keep_last; ++i) {
    const CheckpointFile& each = files[static_cast<std::size_t>(i)];
    if (!keep.contains(each.step)) remove_file(each.path);
  }
}

}  // namespace attend
