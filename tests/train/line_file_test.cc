#include "attend/train/line_file.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/io/support.h"

namespace attend {
namespace {

TEST(LineFile, GrowsByLinesThatAreThereAtOnce) {
  const TemporaryFolder folder;
  const Path path = folder / "log";
  {
    LineFile file(path);
    EXPECT_EQ(get(path), "");
    file.add("one");
    EXPECT_EQ(get(path), "one\n");
    file.add("");
  }
  LineFile(path).add("three");
  EXPECT_EQ(get(path), "one\n\nthree\n");
}

TEST(LineFile, CutsOffWhatADeadWriterBegan) {
  const TemporaryFolder folder;
  const Path path = folder / "log";
  for (const std::size_t length : {1, 10, 4095, 4096, 4097, 100000}) {
    put(path, "whole\n" + std::string(length, 'x'));
    LineFile(path).add("next");
    EXPECT_EQ(get(path), "whole\nnext\n") << length;
    put(path, std::string(length, 'x'));
    LineFile(path).add("next");
    EXPECT_EQ(get(path), "next\n") << length;
  }
}

TEST(LineFile, AFullDiskLeavesWholeLinesAndIsTriedAgain) {
  SmallDisk disk("16k");
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  const Path path = disk.path() / "log";
  LineFile file(path);
  file.add("first");
  EXPECT_EQ(file.problem(), 0);
  file.add(std::string(20000, 'x'));
  EXPECT_EQ(file.problem(), ENOSPC);
  EXPECT_EQ(get(path), "first\n");
  file.add("this one fits");
  EXPECT_EQ(get(path), "first\nthis one fits\n");
}

TEST(LineFile, WhatCannotBeOpenedIsAProblemAndNoMore) {
  const TemporaryFolder folder;
  LineFile file(folder / "missing" / "log");
  EXPECT_EQ(file.problem(), ENOENT);
  file.add("nowhere");
  EXPECT_EQ(entries_of(folder.path()).size(), 0U);
}

}  // namespace
}  // namespace attend
