// The module attend_mpi.so: ranks that are processes of one MPI job. MPI's own waiting spins, so
// that nothing here blocks: transfers are started and tested, and whoever waits sleeps in between.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "attend/comm/communicator.h"

namespace attend {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(100);
constexpr int kTicksBetweenBeats = 10;
constexpr milliseconds kLongestSilence(15000);
/// More than this does not count as one tick's time: then this rank was stopped itself, and perhaps
/// all of the job with it.
constexpr milliseconds kLongestTick(1000);
/// How long a rank that failed waits for rank 0 to say so and to end the job.
constexpr milliseconds kGrace(5000);

constexpr int kTagBeat = 1, kTagFailure = 2;

void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("the connection to another rank failed: {}", std::string(text, text + length));
}

/// Of ranks that cannot go on.
struct Failure {
  int rank = -1;
  int status = 1;
  std::string message;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator();
  ~MpiCommunicator() override { close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  RequestPtr send(int to, int tag, const void* data, std::size_t bytes) override;
  RequestPtr receive(int from, int tag, void* data, std::size_t bytes) override;
  void report_failure(const std::string& message, int status) override;
  void close() override;
  void abort(int status) override;

  bool test(MPI_Request& request);
  void give_up(MPI_Request& request);

 private:
  void gather_hosts();
  void watch();
  void send_beats();
  void take_control_messages();
  void note_silence(milliseconds elapsed);
  void note_failure(Failure failure);
  /// Rank 0 watches all others, and they watch rank 0. With the mutex held.
  bool watches(int other) const { return other != rank_ && (rank_ == 0 || other == 0); }
  std::string name_of(int rank) const;

  int rank_ = 0;
  int size_ = 1;
  MPI_Comm data_ = MPI_COMM_NULL;     ///< what callers send
  MPI_Comm control_ = MPI_COMM_NULL;  ///< beats and failures
  std::vector<std::string> hosts_;
  std::mutex mutex_;  ///< MPI is called by one thread at a time
  std::optional<Failure> failure_;
  std::vector<MPI_Request> beats_;
  std::vector<milliseconds> silence_;  ///< of each rank that this one watches
  std::atomic<bool> closing_ = false;
  std::thread watcher_;
};

class MpiTransfer : public Request {
 public:
  explicit MpiTransfer(MpiCommunicator& owner) : owner_(owner) {}
  ~MpiTransfer() override {
    if (request != MPI_REQUEST_NULL) owner_.give_up(request);
  }
  bool done() override { return owner_.test(request); }

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  MpiCommunicator& owner_;
};

MpiCommunicator::MpiCommunicator() {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED) fail("this MPI cannot be called from several threads");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  check(MPI_Comm_dup(MPI_COMM_WORLD, &data_));
  check(MPI_Comm_dup(MPI_COMM_WORLD, &control_));
  gather_hosts();
  beats_.assign(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
  silence_.assign(static_cast<std::size_t>(size_), milliseconds(0));
  if (size_ > 1) watcher_ = std::thread([this] { watch(); });
}

void MpiCommunicator::gather_hosts() {
  constexpr std::size_t kLongest = MPI_MAX_PROCESSOR_NAME;
  char mine[kLongest] = "";
  int length = 0;
  check(MPI_Get_processor_name(mine, &length));
  std::vector<char> all(kLongest * static_cast<std::size_t>(size_));
  check(MPI_Allgather(mine, kLongest, MPI_CHAR, all.data(), kLongest, MPI_CHAR, data_));
  for (std::size_t at = 0; at < all.size(); at += kLongest) hosts_.emplace_back(&all[at]);
}

std::string MpiCommunicator::name_of(int rank) const {
  return fmt::format("rank {} on {}", rank, hosts_[static_cast<std::size_t>(rank)]);
}

RequestPtr MpiCommunicator::send(int to, int tag, const void* data, std::size_t bytes) {
  auto made = std::make_unique<MpiTransfer>(*this);
  const std::lock_guard lock(mutex_);
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, data_, &made->request));
  return made;
}

RequestPtr MpiCommunicator::receive(int from, int tag, void* data, std::size_t bytes) {
  auto made = std::make_unique<MpiTransfer>(*this);
  const std::lock_guard lock(mutex_);
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, data_, &made->request));
  return made;
}

bool MpiCommunicator::test(MPI_Request& request) {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    if (failure_->status == 2) throw UsageError(failure_->message);
    throw Error(failure_->message);
  }
  if (request == MPI_REQUEST_NULL) return true;
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

/// What has been matched goes on into memory that is about to be freed: it gets a moment to end.
void MpiCommunicator::give_up(MPI_Request& request) {
  int done = 0;
  {
    const std::lock_guard lock(mutex_);
    MPI_Cancel(&request);
  }
  for (int attempt = 0; attempt < 50; ++attempt) {
    {
      const std::lock_guard lock(mutex_);
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) return;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void MpiCommunicator::watch() {
  auto last = std::chrono::steady_clock::now();
  for (int tick = 0; !closing_; ++tick) {
    const auto now = std::chrono::steady_clock::now();
    const auto elapsed = std::chrono::duration_cast<milliseconds>(now - last);
    last = now;
    {
      const std::lock_guard lock(mutex_);
      if (tick % kTicksBetweenBeats == 0) send_beats();
      take_control_messages();
      note_silence(std::min(elapsed, kLongestTick));
    }
    std::this_thread::sleep_for(kTick);
  }
}

void MpiCommunicator::send_beats() {
  static const char beat = 0;
  for (int other = 0; other < size_; ++other) {
    if (!watches(other)) continue;
    MPI_Request& last = beats_[static_cast<std::size_t>(other)];
    int sent = 1;
    if (last != MPI_REQUEST_NULL) MPI_Test(&last, &sent, MPI_STATUS_IGNORE);
    if (sent != 0) MPI_Isend(&beat, 1, MPI_BYTE, other, kTagBeat, control_, &last);
  }
}

void MpiCommunicator::take_control_messages() {
  while (true) {
    int there = 0;
    MPI_Status status;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_, &there, &status);
    if (code != MPI_SUCCESS || there == 0) return;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    MPI_Recv(bytes.data(), count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, control_,
             MPI_STATUS_IGNORE);
    silence_[static_cast<std::size_t>(status.MPI_SOURCE)] = milliseconds(0);
    if (status.MPI_TAG != kTagFailure) continue;
    Message message(std::move(bytes));
    const int exit_status = message.get<int>();
    note_failure({status.MPI_SOURCE, exit_status,
                  fmt::format("{}: {}", name_of(status.MPI_SOURCE), message.get_text())});
  }
}

void MpiCommunicator::note_silence(milliseconds elapsed) {
  for (int other = 0; other < size_; ++other) {
    if (!watches(other)) continue;
    milliseconds& silence = silence_[static_cast<std::size_t>(other)];
    silence += elapsed;
    if (silence <= kLongestSilence) continue;
    note_failure({other, 1,
                  fmt::format("{} has not been heard of for {} s: it died, or its machine or the "
                              "network to it is down; start the same command again to go on from "
                              "the last checkpoint",
                              name_of(other), kLongestSilence / std::chrono::seconds(1))});
  }
}

void MpiCommunicator::note_failure(Failure failure) {
  if (!failure_) failure_ = std::move(failure);  // of several the first is the cause
}

void MpiCommunicator::report_failure(const std::string& message, int status) {
  if (rank_ == 0 || size_ == 1) return;  // who leads ends all
  Message letter;
  letter.put(status);
  letter.put(message);
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;  // rank 0 is gone
    MPI_Isend(letter.bytes().data(), static_cast<int>(letter.bytes().size()), MPI_BYTE, 0,
              kTagFailure, control_, &request);
  }
  std::this_thread::sleep_for(kGrace);  // the watcher moves it along; then mpirun ends this process
}

void MpiCommunicator::close() {
  if (closing_.exchange(true)) return;
  if (watcher_.joinable()) watcher_.join();
  for (MPI_Request& beat : beats_) {
    if (beat != MPI_REQUEST_NULL) MPI_Request_free(&beat);
  }
  MPI_Finalize();
}

void MpiCommunicator::abort(int status) {
  const std::lock_guard lock(mutex_);
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace
}  // namespace attend

extern "C" attend::Communicator* attend_make_mpi_communicator() {
  return new attend::MpiCommunicator();
}
