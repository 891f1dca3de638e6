#include "attend/cli/status_line.h"

#include <gtest/gtest.h>

namespace attend {
namespace {

TEST(StatusLine, IsCutBetweenCharacters) {
  EXPECT_EQ(first_columns("abc", 5), "abc");
  EXPECT_EQ(first_columns("abc", 2), "ab");
  EXPECT_EQ(first_columns("\u00e4\u20ac\U0001F600x", 3), "\u00e4\u20ac\U0001F600");
  EXPECT_EQ(first_columns("abc", 0), "");
}

TEST(StatusLine, ProgressFitsOnALine) {
  TrainProgress progress;
  progress.done = {.epochs = 13.412, .updates = 12000, .tokens = 1, .seconds = 1};
  progress.loss = 3.211;
  progress.perplexity = 9.8;
  progress.tokens_per_second = 16500.4;
  progress.learning_rate = 0.00071;
  progress.gradient_norm = 0.82;
  progress.peak_resident_bytes = int64_t{310} << 20;
  EXPECT_EQ(short_text(progress),
            "step 12000 ep 13.41 loss 3.21 ppl 9.80 16500 tok/s lr 0.00071 norm 0.82 310M");
  progress.skipped_updates = 2;
  EXPECT_TRUE(short_text(progress).ends_with(" 310M skipped 2"));
  progress.seconds_left = 245;
  EXPECT_TRUE(short_text(progress).ends_with(" 4m05s left"));
  progress.seconds_left = 7380;
  EXPECT_TRUE(short_text(progress).ends_with(" 2h03m left"));
}

TEST(StatusLine, IsNotDrawnWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    StatusLine status;
    EXPECT_FALSE(status.is_drawn());
    status.show("nothing");
    status.log_only("a line");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a line\n");
}

}  // namespace
}  // namespace attend
