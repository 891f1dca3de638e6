#pragma once

#include <cstdint>
#include <string>

namespace attend {

/// The memory that this process may still take: what the machine has free or can free, and no more
/// than the control groups that the process is in (cgroup v2) allow. The largest number where the
/// system does not say.
int64_t available_memory_bytes();

/// The memory that this process holds now, in bytes.
int64_t resident_bytes();

/// The most memory that this process has held, in bytes.
int64_t peak_resident_bytes();

/// Gives the heap's free pages back to the system.
void trim_heap();

/// The same as available_memory_bytes() from files that hold what /proc/meminfo, /proc/self/cgroup
/// and /sys/fs/cgroup do.
int64_t available_memory_bytes(const std::string& meminfo, const std::string& own_groups,
                               const std::string& group_root);

}  // namespace attend
