#include "attend/cli/ranks.h"

#include <csignal>
#include <exception>
#include <new>
#include <utility>

#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/comm/launch.h"
#include "attend/train/follower.h"

namespace attend {
namespace {

constexpr int kFailed = 1, kWrongCall = 2;

int lead(std::unique_ptr<Communicator> joined, Command& command,
         const std::vector<std::string>& arguments) {
  RankSession session(std::move(joined));
  const int status = exit_status_of([&] {
    command.lead(session);
    run_command(command, arguments);
  });
  Communicator& ranks = session.communicator();
  // Others that wait for this one's part of an update cannot be told anything any more.
  if (ranks.busy()) ranks.abort(status);
  const int ended = exit_status_of([&] { session.end(); });
  if (ended != 0) ranks.abort(ended);
  return status;
}

/// Rank 0 says what went wrong here and ends the job; if it does not, this rank does.
[[noreturn]] void leave(Communicator& ranks, const char* message, int status) {
  ranks.report_failure(message, status);
  logger().error("{}", message);
  ranks.abort(status);
  std::_Exit(status);
}

int follow_rank_0(Communicator& ranks) {
  // A signal to the job is one to rank 0, which ends the others when it has written a checkpoint.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  set_log_level(LogLevel::kQuiet);
  try {
    follow(ranks);
    ranks.close();
    return 0;
  } catch (const UsageError& error) {
    leave(ranks, error.what(), kWrongCall);
  } catch (const std::bad_alloc&) {
    leave(ranks, "out of memory", kFailed);
  } catch (const std::exception& error) {
    leave(ranks, error.what(), kFailed);
  }
}

}  // namespace

void RankSession::end() {
  if (std::exchange(ended_, true)) return;
  ranks_->set_busy(true);  // where one does not answer, the job is aborted
  end_followers(*ranks_);
  ranks_->close();
  ranks_->set_busy(false);
}

int run_in_ranks(Command& command, const std::vector<std::string>& arguments) {
  std::unique_ptr<Communicator> ranks = join_ranks();
  if (!ranks) {
    run_command(command, arguments);
    return 0;
  }
  if (ranks->rank() > 0) return follow_rank_0(*ranks);
  return lead(std::move(ranks), command, arguments);
}

}  // namespace attend
