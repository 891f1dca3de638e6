#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

/// What one kind of op cost: calls, seconds, floating-point operations of its matrix products
/// (2 · m · n · k each), and bytes that it must at least read and write.
struct ProfileRow {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

/// Times a scope under a name, on the calling thread, after start_profile(): two clock reads, some
/// 50 ns. Scopes do not nest: the inner one's time is taken off the outer one's. `name` must
/// outlive the program.
class ProfileScope {
 public:
  explicit ProfileScope(const char* name, double flops = 0, double bytes = 0);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  friend void profile_bytes(double bytes);
  const char* name_;  ///< null where nothing is timed
  double flops_;
  double bytes_;
  ProfileScope* outer_;
  double inner_seconds_ = 0;
  std::chrono::steady_clock::time_point start_;
};

/// Adds bytes to the innermost scope of the calling thread, if there is one.
void profile_bytes(double bytes);

/// Forgets what there is and times from now on, in all threads. Nothing is timed before.
void start_profile();
void stop_profile();
/// The sum over all threads since start_profile(), most time first.
std::vector<ProfileRow> profile();
/// A table for people: calls, time, share, GFLOP/s, GB/s.
std::string format_profile(const std::vector<ProfileRow>& rows);

}  // namespace attend
