#include "attend/comm/local_communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "attend/comm/launch.h"

namespace attend {
namespace {

/// Runs `work` on as many threads as there are ranks.
void on_ranks(int count, const std::function<void(Communicator&)>& work) {
  const auto ranks = make_local_communicators(count);
  std::vector<std::jthread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&] { work(*rank); });
}

TEST(Message, GivesBackWhatWasPutIn) {
  Message message;
  message.put(int64_t{-3});
  message.put(std::vector<float>{1.5F, -2});
  message.put(std::string("a text"));
  message.put(std::vector<int32_t>());
  Message received(message.bytes());
  EXPECT_EQ(received.get<int64_t>(), -3);
  EXPECT_EQ(received.get_vector<float>(), (std::vector<float>{1.5F, -2}));
  EXPECT_EQ(received.get_text(), "a text");
  EXPECT_TRUE(received.get_vector<int32_t>().empty());
  EXPECT_THROW(received.get<char>(), Error);
}

TEST(Message, ALengthThatIsNotThereIsAnErrorAndNotAllocated) {
  Message message;
  message.put(~std::size_t{0} / 2);
  Message received(message.bytes());
  EXPECT_THROW(received.get_vector<int64_t>(), Error);
}

TEST(LocalCommunicator, MessagesArriveInOrderAndWhole) {
  on_ranks(3, [](Communicator& ranks) {
    const int next = (ranks.rank() + 1) % 3, before = (ranks.rank() + 2) % 3;
    for (int i = 0; i < 20; ++i) {
      Message message;
      message.put(std::vector<int>(static_cast<std::size_t>(i), 100 * ranks.rank() + i));
      send_message(ranks, next, message);
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(receive_message(ranks, before).get_vector<int>(),
                std::vector<int>(static_cast<std::size_t>(i), 100 * before + i));
    }
  });
}

TEST(LocalCommunicator, GathersInTheOrderOfTheRanks) {
  on_ranks(4, [](Communicator& ranks) {
    EXPECT_EQ(all_gather(ranks, 10 * ranks.rank(), kTagSums), (std::vector<int>{0, 10, 20, 30}));
  });
}

TEST(LocalCommunicator, AFailureReachesEveryoneWhoWaits) {
  on_ranks(3, [](Communicator& ranks) {
    if (ranks.rank() == 1) return ranks.report_failure("no more", 2);
    try {
      receive_message(ranks, 1);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(), "rank 1: no more");
    }
  });
}

TEST(Launch, KnowsFromItsEnvironmentWhetherMpirunStartedIt) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE",
                           "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_RANK"}) {
    unsetenv(name);
  }
  EXPECT_FALSE(started_as_rank());
  EXPECT_EQ(ranks_on_this_machine(), 1);
  EXPECT_EQ(join_ranks(), nullptr);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_FALSE(started_as_rank());
  setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
  EXPECT_TRUE(started_as_rank());
  EXPECT_EQ(ranks_on_this_machine(), 3);
  // There is no module beside this test.
  try {
    join_ranks();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("built without MPI"), std::string::npos);
  }
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

TEST(Patience, SleepsLongerTheLongerItTakesWithinBounds) {
  const Patience patience;
  EXPECT_LE(patience.next_rest(), std::chrono::microseconds(500));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(patience.next_rest(), std::chrono::microseconds(2000));
}

}  // namespace
}  // namespace attend
