#include "attend/comm/launch.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#ifndef ATTEND_MODULE_FROM_BIN
#define ATTEND_MODULE_FROM_BIN "../lib/attend"
#endif

namespace attend {
namespace {

constexpr const char* kModule = "attend_mpi.so";
constexpr const char* kEntry = "attend_make_mpi_communicator";

/// The first of these variables that holds a number; -1 where none does.
template <std::size_t Count>
int64_t number_in_environment(const std::array<const char*, Count>& names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string_view digits(text);
    int64_t number = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number >= 0) return number;
  }
  return -1;
}

// Open MPI; MPICH and Slurm; PMIx, which tells the rank alone.
constexpr std::array kSizes = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
constexpr std::array kRanks = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
constexpr std::array kLocalSizes = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};

/// Beside the command (where it was built), or where it was installed relative to the command.
std::filesystem::path find_module() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& candidate : {folder / kModule, folder / ATTEND_MODULE_FROM_BIN / kModule}) {
    if (std::filesystem::exists(candidate, error)) return candidate;
  }
  return {};
}

[[noreturn]] void fail_once(const std::string& message) {
  // Every rank fails alike; rank 0 says it, and mpirun ends the others.
  if (number_in_environment(kRanks) > 0) std::this_thread::sleep_for(std::chrono::seconds(5));
  throw Error(message);
}

}  // namespace

bool started_as_rank() {
  const int64_t size = number_in_environment(kSizes);
  return size >= 0 ? size > 1 : number_in_environment(kRanks) >= 0;
}

int64_t ranks_on_this_machine() {
  if (!started_as_rank()) return 1;
  return std::max<int64_t>(1, number_in_environment(kLocalSizes));
}

std::unique_ptr<Communicator> join_ranks() {
  if (!started_as_rank()) return nullptr;
  const std::filesystem::path module = find_module();
  if (module.empty()) {
    fail_once(fmt::format(
        "mpirun started this, but attend has no {} beside it: it was built without MPI. Install "
        "libopenmpi-dev and build again, or start attend without mpirun",
        kModule));
  }
  // Global: MPI loads components of its own that look for it.
  void* handle = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* entry = handle == nullptr ? nullptr : dlsym(handle, kEntry);
  if (entry == nullptr) {
    const char* problem = dlerror();
    fail_once(fmt::format("cannot load {}: {}", module.string(),
                          problem != nullptr ? problem : "unknown error"));
  }
  std::unique_ptr<Communicator> ranks(reinterpret_cast<Communicator* (*)()>(entry)());
  if (ranks->size() > 1) return ranks;
  ranks->close();
  if (number_in_environment(kSizes) > 1) {
    fail_once(
        fmt::format("{} is of another MPI than the mpirun that started this, so that every rank is "
                    "alone; start "
                    "it with the mpirun of the MPI that attend was built with",
                    module.string()));
  }
  return nullptr;
}

}  // namespace attend
