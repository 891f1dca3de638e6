#include "attend/base/worker_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace {

TEST(WorkerPool, EveryWorkerRunsEachJobOnce) {
  WorkerPool pool(3);
  EXPECT_EQ(pool.size(), 3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> runs(3, 0);
    pool.run([&](int64_t worker) { ++runs[static_cast<std::size_t>(worker)]; });
    ASSERT_EQ(runs, (std::vector<int>{1, 1, 1})) << "round " << round;
  }
}

TEST(WorkerPool, WorkersAreThreadsOfTheirOwnAndTheSameEveryTime) {
  std::atomic<int> started = 0;
  WorkerPool pool(2, [&] { ++started; });
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int round = 0; round < 10; ++round) {
    pool.run([&](int64_t) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(threads.size(), 2U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(started, 2) << "on_start runs once a worker, before its first job";
}

TEST(WorkerPool, AFailureIsThrownWhenAllAreDoneAndThePoolGoesOn) {
  WorkerPool pool(3);
  for (int64_t failing = 0; failing < 3; ++failing) {
    std::atomic<int> done = 0;
    try {
      pool.run([&](int64_t worker) {
        if (worker == failing) throw std::runtime_error("bad luck");
        ++done;
      });
      FAIL() << "expected an exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "bad luck");
    }
    EXPECT_EQ(done, 2);
    pool.run([&](int64_t) { ++done; });
    EXPECT_EQ(done, 5) << "the failure is not thrown again";
  }
}

TEST(WorkerPool, IsDestroyedIdle) {
  for (int i = 0; i < 20; ++i) WorkerPool pool(4);
  WorkerPool none(0);
  none.run([](int64_t) { ADD_FAILURE() << "nobody is there"; });
}

#ifndef ATTEND_SANITIZE  // which need address space of their own
TEST(Contract24WorkerPool, ThreadsThatTheSystemDoesNotGiveAreAnError) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = rlim_t{1} << 30, .rlim_max = rlim_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);  // a thread's stack takes 8 MiB of it
    try {
      const WorkerPool pool(1000);
      _exit(1);
    } catch (const Error& error) {
      const std::string message = error.what();
      _exit(message.find("cannot start 1000 workers, only ") == 0 ? 0 : 2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

TEST(Cores, AreThoseOfTheAffinity) {
  const int64_t all = available_cores();
  EXPECT_GE(all, 1);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(available_cores(), 1);
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_EQ(available_cores(), all);
}

}  // namespace
}  // namespace attend
