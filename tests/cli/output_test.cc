#include "attend/cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "attend/base/error.h"
#include "tests/cli/process.h"

namespace attend {
namespace {

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(Contract13Output, AFileIsCompleteOrAsItWas) {
  const TemporaryFolder folder;
  const std::string file = folder.file("out", "old");
  {
    Output failed(file);
    failed.write_line(std::string(200000, 'x'));
    failed.flush();
    EXPECT_EQ(contents_of(file), "old");
  }
  EXPECT_EQ(entries_of(folder.path("")), std::vector<std::string>{"out"});
  Output output(file);
  output.write_line("new");
  output.finish();
  EXPECT_EQ(contents_of(file), "new\n");
}

TEST(Output, LinksAndPermissionsStay) {
  const TemporaryFolder folder;
  const std::string file = folder.file("out", "old");
  chmod(file.c_str(), 0600);
  std::filesystem::create_symlink(file, folder.path("link"));
  Output output(folder.path("link"));
  output.write("new");
  output.finish();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(contents_of(file), "new");
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(Output, PipesAreWrittenAsItGoes) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = contents_of(pipe); });
  {
    Output output(pipe);
    output.write_line("line");
    output.finish();
  }
  reader.join();
  EXPECT_EQ(read, "line\n");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(Output, NamesThatCannotBeWrittenAreErrors) {
  const TemporaryFolder folder;
  EXPECT_THROW(Output(folder.path("")), Error);
  EXPECT_THROW(Output(folder.path("no/such/folder")), Error);
  EXPECT_THROW(Output(folder.path(std::string(300, 'x'))), Error);
}

TEST(Contract13Output, AnInputIsNeverWrittenOver) {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "text");
  std::filesystem::create_symlink(file, folder.path("symbolic"));
  std::filesystem::create_hard_link(file, folder.path("hard"));
  for (const char* name : {"file", "symbolic", "hard"}) {
    EXPECT_THROW(refuse_to_overwrite(folder.path(name), {"-", file}), UsageError);
  }
  EXPECT_NO_THROW(refuse_to_overwrite(folder.path("new"), {file}));
  EXPECT_NO_THROW(refuse_to_overwrite(folder.file("other", "text"), {file}));
  EXPECT_NO_THROW(refuse_to_overwrite("/dev/null", {"/dev/null"}));
}

TEST(Contract13Output, TokenizersDoNotWriteOverTheirText) {
  const TemporaryFolder folder;
  const std::string text = folder.file("text", "one two\n");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"tokenizer", "train", text, "--output", text},
           {"tokenizer", "encode", "t", "--input", text, "--output", text},
           {"tokenizer", "decode", text, "--output", text}}) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 2) << finished.err;
    EXPECT_THAT(finished.err, testing::HasSubstr("is the same file as " + text));
    EXPECT_EQ(contents_of(text), "one two\n");
  }
}

}  // namespace
}  // namespace attend
