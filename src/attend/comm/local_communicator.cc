#include "attend/comm/local_communicator.h"

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace attend {
namespace {

/// What is on its way between the ranks.
struct Post {
  using Address = std::tuple<int, int, int>;  ///< from, to, tag

  std::mutex mutex;
  std::map<Address, std::deque<std::vector<std::byte>>> letters;
  std::string failure;
  int failed_rank = -1;
  int failure_status = 0;

  /// With the mutex held.
  void check() const {
    if (failed_rank < 0) return;
    const std::string message = fmt::format("rank {}: {}", failed_rank, failure);
    if (failure_status == 2) throw UsageError(message);
    throw Error(message);
  }
};

class Sent : public Request {
 public:
  bool done() override { return true; }
};

class Awaited : public Request {
 public:
  Awaited(std::shared_ptr<Post> post, Post::Address address, void* to, std::size_t bytes)
      : post_(std::move(post)), address_(std::move(address)), to_(to), bytes_(bytes) {}

  bool done() override {
    if (done_) return true;
    const std::lock_guard lock(post_->mutex);
    post_->check();
    auto& letters = post_->letters[address_];
    if (letters.empty()) return false;
    if (letters.front().size() != bytes_) {
      fail("a rank sent {} bytes where {} were expected", letters.front().size(), bytes_);
    }
    if (bytes_ > 0) std::memcpy(to_, letters.front().data(), bytes_);
    letters.pop_front();
    return done_ = true;
  }

 private:
  std::shared_ptr<Post> post_;
  Post::Address address_;
  void* to_;
  std::size_t bytes_;
  bool done_ = false;
};

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Post> post, int rank, int size)
      : post_(std::move(post)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  RequestPtr send(int to, int tag, const void* data, std::size_t bytes) override {
    const auto* first = static_cast<const std::byte*>(data);
    const std::lock_guard lock(post_->mutex);
    post_->check();
    post_->letters[{rank_, to, tag}].emplace_back(first, first + bytes);
    return std::make_unique<Sent>();
  }
  RequestPtr receive(int from, int tag, void* data, std::size_t bytes) override {
    return std::make_unique<Awaited>(post_, Post::Address{from, rank_, tag}, data, bytes);
  }

  void report_failure(const std::string& message, int status) override {
    const std::lock_guard lock(post_->mutex);
    if (post_->failed_rank >= 0) return;  // of several the first is the cause
    post_->failure = message;
    post_->failed_rank = rank_;
    post_->failure_status = status;
  }
  void close() override {}
  void abort(int status) override { report_failure("was ended", status); }

 private:
  std::shared_ptr<Post> post_;
  int rank_;
  int size_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size) {
  const auto post = std::make_shared<Post>();
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<LocalCommunicator>(post, rank, size));
  }
  return ranks;
}

}  // namespace attend
