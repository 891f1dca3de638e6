#include "attend/base/profile.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

namespace attend {
namespace {

/// One thread's sums. Its own thread writes it under its own, uncontended lock.
struct ThreadProfile {
  std::mutex mutex;
  std::unordered_map<const char*, ProfileRow> rows;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadProfile>> threads;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

ThreadProfile& this_thread() {
  thread_local const std::shared_ptr<ThreadProfile> mine = [] {
    auto made = std::make_shared<ThreadProfile>();
    const std::lock_guard lock(registry().mutex);
    registry().threads.push_back(made);
    return made;
  }();
  return *mine;
}

thread_local ProfileScope* innermost = nullptr;
std::atomic<bool> is_timing = false;

}  // namespace

ProfileScope::ProfileScope(const char* name, double flops, double bytes)
    : name_(is_timing.load(std::memory_order_relaxed) ? name : nullptr),
      flops_(flops),
      bytes_(bytes),
      outer_(innermost) {
  if (name_ == nullptr) return;
  innermost = this;
  start_ = std::chrono::steady_clock::now();
}

ProfileScope::~ProfileScope() {
  if (name_ == nullptr) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  innermost = outer_;
  if (outer_ != nullptr) outer_->inner_seconds_ += seconds;
  ThreadProfile& sums = this_thread();
  const std::lock_guard lock(sums.mutex);
  ProfileRow& row = sums.rows[name_];
  ++row.calls;
  row.seconds += seconds - inner_seconds_;
  row.flops += flops_;
  row.bytes += bytes_;
}

void profile_bytes(double bytes) {
  if (innermost != nullptr) innermost->bytes_ += bytes;
}

std::vector<ProfileRow> profile() {
  std::map<std::string, ProfileRow> by_name;
  const std::lock_guard lock(registry().mutex);
  for (const auto& thread : registry().threads) {
    const std::lock_guard thread_lock(thread->mutex);
    for (const auto& [name, row] : thread->rows) {
      ProfileRow& sum = by_name[name];
      sum.name = name;
      sum.calls += row.calls;
      sum.seconds += row.seconds;
      sum.flops += row.flops;
      sum.bytes += row.bytes;
    }
  }
  std::vector<ProfileRow> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::sort(rows.begin(), rows.end(),
            [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

void stop_profile() { is_timing = false; }

void start_profile() {
  is_timing = true;
  const std::lock_guard lock(registry().mutex);
  for (const auto& thread : registry().threads) {
    const std::lock_guard thread_lock(thread->mutex);
    thread->rows.clear();
  }
}

std::string format_profile(const std::vector<ProfileRow>& rows) {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.seconds;
  std::string table = fmt::format("{:<34} {:>9} {:>10} {:>7} {:>9} {:>7}\n", "op", "calls",
                                  "seconds", "share", "GFLOP/s", "GB/s");
  const auto rate = [](double amount, double seconds) {
    return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "";
  };
  for (const ProfileRow& row : rows) {
    table += fmt::format("{:<34} {:>9} {:>10.4f} {:>6.1f}% {:>9} {:>7}\n", row.name, row.calls,
                         row.seconds, total > 0 ? 100 * row.seconds / total : 0,
                         rate(row.flops, row.seconds), rate(row.bytes, row.seconds));
  }
  return table;
}

}  // namespace attend
