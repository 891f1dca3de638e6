#include "attend/io/event_file.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/io/support.h"
#include "tests/support/event_reader.h"

namespace attend {
namespace {

using testing::EventReader;
using testing::ReadEvent;

TEST(Crc32c, IsThatOfRfc3720) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

// The first record of every event file of TensorFlow begins with these: a length of 24, its CRC.
TEST(Crc32c, IsMaskedAsTensorFlowDoes) {
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(masked_crc32c(length), 0x224B7FA3U) << "a3 7f 4b 22";
}

TEST(EventFile, HoldsWhatWasAdded) {
  const TemporaryFolder folder;
  EventFile file(folder / "made/for/it", 1700000000.5, 11);
  file.add(1700000001.25, 20, {{"train/loss", 2.5F}, {"train/learning_rate", 1e-4F}});
  file.add(1700000002, int64_t{1} << 40, {{"valid/bleu", 37.25F}});
  const auto events = EventReader::read(file.path());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1700000000.5);
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[1].step, 11);
  EXPECT_EQ(events[2].wall_time, 1700000001.25);
  EXPECT_EQ(events[2].step, 20);
  EXPECT_EQ(events[2].scalars,
            (std::map<std::string, float>{{"train/loss", 2.5F}, {"train/learning_rate", 1e-4F}}));
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  EXPECT_EQ(events[3].scalars.at("valid/bleu"), 37.25F);
}

TEST(EventFile, LeavesOutWhatIsNotFinite) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 1, 1);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  file.add(2, 1, {{"a", kInfinity}, {"b", 1}, {"c", std::numeric_limits<float>::quiet_NaN()}});
  file.add(3, 2, {{"a", -kInfinity}});
  const auto events = EventReader::read(file.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"b", 1}}));
}

TEST(EventFile, NamesSortInTheOrderOfTheirMaking) {
  const TemporaryFolder folder;
  const EventFile first(folder.path(), 999, 1), second(folder.path(), 999, 5),
      third(folder.path(), 1'700'000'000, 9);
  EXPECT_LT(first.path(), second.path());
  EXPECT_LT(second.path(), third.path());
  EXPECT_NE(first.path().string().find("tfevents"), std::string::npos) << "how it is known";
}

TEST(EventFile, SaysWhereItCannotBeMade) {
  const TemporaryFolder folder;
  write_file(folder / "file", "in the way");
  EXPECT_THROW(EventFile(folder / "file", 1, 1), Error);
}

TEST(EventFile, AFullDiskIsAProblemAndNoError) {
  const SmallDisk disk("16k");
  if (!disk.mounted()) GTEST_SKIP() << "no file system can be mounted here";
  EventFile file(disk.path(), 1, 1);
  for (int step = 0; step < 2000; ++step) file.add(2, step, {{"train/loss", 1}});
  EXPECT_EQ(file.problem(), ENOSPC);
}

}  // namespace
}  // namespace attend
