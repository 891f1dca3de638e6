#include "attend/comm/communicator.h"

#include <algorithm>
#include <thread>

namespace attend {

std::chrono::microseconds Patience::next_rest() const {
  using std::chrono::microseconds;
  const auto waited =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start_);
  return std::clamp(waited / 32, microseconds(20), microseconds(2000));
}

void Patience::rest() const { std::this_thread::sleep_for(next_rest()); }

void wait(Request& request) {
  for (const Patience patience; !request.done();) patience.rest();
}

void wait_all(std::vector<RequestPtr>& requests) {
  for (const RequestPtr& request : requests) wait(*request);
  requests.clear();
}

void send_message(Communicator& ranks, int to, const Message& message) {
  const std::size_t size = message.bytes().size();
  const RequestPtr length = ranks.send(to, kTagLength, &size, sizeof(size));
  const RequestPtr body = ranks.send(to, kTagMessage, message.bytes().data(), size);
  wait(*length);
  wait(*body);
}

Message receive_message(Communicator& ranks, int from) {
  std::size_t size = 0;
  wait(*ranks.receive(from, kTagLength, &size, sizeof(size)));
  std::vector<std::byte> bytes(size);
  wait(*ranks.receive(from, kTagMessage, bytes.data(), size));
  return Message(std::move(bytes));
}

}  // namespace attend
