#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "attend/comm/message.h"

namespace attend {

/// A transfer under way. Its memory must live until it is done; destroying it earlier gives it up.
class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;
  /// Whether it is done; never blocks. Throws Error where another rank has failed or is gone.
  virtual bool done() = 0;
};
using RequestPtr = std::unique_ptr<Request>;

/// Processes (ranks, numbered from 0) that work together by messages alone: they share no memory
/// and no disk. Rank 0 leads. Transfers from one rank to another with one tag arrive in the order
/// in which they were sent. Nothing blocks, so nothing spins; see wait().
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `tag`: 0 to 32767.
  virtual RequestPtr send(int to, int tag, const void* data, std::size_t bytes) = 0;
  /// The sender must send as many bytes.
  virtual RequestPtr receive(int from, int tag, void* data, std::size_t bytes) = 0;

  /// Tells that this rank cannot go on: requests of the others throw an Error with the message, a
  /// UsageError where `status` is 2. Returns where no other rank ends this process for it.
  virtual void report_failure(const std::string& message, int status) = 0;
  /// Ends this rank's part in peace, when all others do the same. Nothing may be under way.
  virtual void close() = 0;
  /// Ends all processes at once with this exit status, where ranks are processes.
  virtual void abort(int status) = 0;

  /// Whether ranks wait for each other's part of something, so that the leader cannot just leave.
  bool busy() const { return busy_; }
  void set_busy(bool busy) { busy_ = busy; }

 private:
  bool busy_ = false;
};

/// Sleeps between looks at something that will come: the longer it has taken, the longer.
class Patience {
 public:
  void rest() const;
  std::chrono::microseconds next_rest() const;
  void reset() { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Sleeps until the requests are done.
void wait(Request& request);
void wait_all(std::vector<RequestPtr>& requests);

/// A message of any length.
void send_message(Communicator& ranks, int to, const Message& message);
Message receive_message(Communicator& ranks, int from);

/// What every rank gave, in the order of the ranks. All ranks call it together.
template <typename T>
std::vector<T> all_gather(Communicator& ranks, const T& mine, int tag) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(ranks.size()), mine);
  std::vector<RequestPtr> requests;
  for (int other = 0; other < ranks.size(); ++other) {
    if (other == ranks.rank()) continue;
    requests.push_back(ranks.receive(other, tag, &all[static_cast<std::size_t>(other)], sizeof(T)));
    requests.push_back(ranks.send(other, tag, &mine, sizeof(T)));
  }
  wait_all(requests);
  return all;
}

/// Tags of messages that are no piece of a flat tensor.
inline constexpr int kTagLength = 0, kTagMessage = 1, kTagSums = 2, kFirstPieceTag = 8;

}  // namespace attend
