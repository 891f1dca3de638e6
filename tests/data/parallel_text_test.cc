#include "attend/data/parallel_text.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace attend {
namespace {

TEST(Contract08, UnequalLineCountsNameBothFilesAndCounts) {
  TestFolder folder;
  const std::string three = folder.write("three.txt", "a\nb\nc\n");
  const std::string five = folder.write("five.txt.gz", gzip("1\n2\n3\n4\n5"));
  for (const ParallelFiles& files : {ParallelFiles{.source = three, .target = five},
                                     ParallelFiles{.source = five, .target = three}}) {
    const std::string message = message_of([&] { read_parallel_text(files); });
    expect_contains(message, three + " has 3");
    expect_contains(message, five + " has 5");
  }
  const std::string empty = folder.write("empty.txt", "");
  expect_contains(message_of([&] { read_parallel_text({.source = three, .target = empty}); }),
                  empty + " has 0");
}

TEST(Contract08, ATsvLineWithoutExactlyOneTabIsNamed) {
  TestFolder folder;
  for (const std::string bad : {"no tab", "two\ttabs\there", ""}) {
    const std::string path = folder.write("pairs.tsv", "a\tb\n\tc\n" + bad + "\nd\te\n");
    expect_contains(message_of([&] { read_parallel_text({.tsv = path}); }), path + ", line 3");
  }
}

TEST(Contract08, SkippedBadLinesAreCounted) {
  TestFolder folder;
  const std::string path = folder.write("pairs.tsv", "x\na\tb\r\n1\t2\t3\n\nc\t\n");
  ParallelReader reader({.tsv = path}, true);
  std::string source, target;
  ASSERT_TRUE(reader.next(source, target));
  EXPECT_EQ(source + "|" + target, "a|b");
  ASSERT_TRUE(reader.next(source, target));
  EXPECT_EQ(source + "|" + target, "c|");
  EXPECT_FALSE(reader.next(source, target));
  EXPECT_EQ(reader.bad_lines(), 3);
}

TEST(Contract11, ParallelTextIsReadFromGzip) {
  TestFolder folder;
  const ParallelText text = read_parallel_text(
      {.source = folder.write("s.gz", gzip("a\tx\n\n")), .target = folder.write("t.txt", "1\n2")});
  EXPECT_EQ(text.source, (std::vector<std::string>{"a\tx", ""}));
  EXPECT_EQ(text.target, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(read_parallel_text({.tsv = folder.write("p.gz", gzip("a\tb\n"))}).target[0], "b");
}

TEST(ParallelText, RefusesOtherThanTwoFilesOrOneTsv) {
  const auto refused = [](const ParallelFiles& files) {
    EXPECT_THROW(read_parallel_text(files), UsageError);
  };
  refused({});
  refused({.source = "a"});
  refused({.target = "a"});
  refused({.source = "a", .target = "b", .tsv = "c"});
  refused({.source = "a", .tsv = "c"});
}

}  // namespace
}  // namespace attend
