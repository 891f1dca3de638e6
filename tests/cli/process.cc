#include "tests/cli/process.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace attend {
namespace {

/// Becomes the command; never returns.
[[noreturn]] void become_attend(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(ATTEND_COMMAND)};
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  execv(ATTEND_COMMAND, argv.data());
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void redirect(const std::string& path, int flags, int to) {
  const int file = open(path.c_str(), flags, 0600);
  dup2(file, to);
  close(file);
}

/// A child process with its streams in files.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::string& input,
        rlim_t memory = RLIM_INFINITY, rlim_t file_size = RLIM_INFINITY) {
    const std::string in = folder_.file("in", input);
    pid_ = fork();
    if (pid_ != 0) return;
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(folder_.path("out"), O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(folder_.path("err"), O_WRONLY | O_CREAT, STDERR_FILENO);
    const rlimit limit{memory, memory};
    if (memory != RLIM_INFINITY) setrlimit(RLIMIT_AS, &limit);
    const rlimit file_limit{file_size, file_size};
    if (file_size != RLIM_INFINITY) setrlimit(RLIMIT_FSIZE, &file_limit);
    become_attend(arguments);
  }
  pid_t pid() const { return pid_; }
  Finished finish() const {
    const int status = wait_for(pid_);
    return {status, contents_of(folder_.path("out")), contents_of(folder_.path("err"))};
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

}  // namespace

Finished run(const std::vector<std::string>& arguments, const std::string& input) {
  return Child(arguments, input).finish();
}

Finished run_with_file_limit(const std::vector<std::string>& arguments, const std::string& input,
                             size_t bytes) {
  return Child(arguments, input, RLIM_INFINITY, bytes).finish();
}

Finished run_in_memory(const std::vector<std::string>& arguments, size_t bytes) {
  return Child(arguments, "", bytes).finish();
}

Finished run_until_file(const std::vector<std::string>& arguments, const std::string& cue,
                        int signal) {
  const Child child(arguments, "");
  for (int tries = 0; tries < 6000 && !std::filesystem::exists(cue); ++tries) usleep(10000);
  kill(child.pid(), signal);
  return child.finish();
}

Finished run_until_entry(const std::vector<std::string>& arguments, const std::string& folder,
                         int signal) {
  const Child child(arguments, "");
  for (int tries = 0; tries < 6000 && std::filesystem::is_empty(folder); ++tries) usleep(10000);
  usleep(200000);  // until its handlers are in place
  kill(child.pid(), signal);
  return child.finish();
}

Finished run_on_terminal(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder.path("out");
  winsize size{};
  size.ws_row = 25;
  size.ws_col = 100;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    become_attend(arguments);
  }
  std::string drawn;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof(buffer))) > 0;) {
    drawn.append(buffer, static_cast<size_t>(count));
  }
  close(terminal);
  const int status = wait_for(child);
  return {status, contents_of(out), drawn};
}

Finished converse(const std::vector<std::string>& arguments, const std::string& prompt,
                  const std::vector<std::string>& lines) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) become_attend(arguments);
  std::string seen;
  std::size_t next = 0;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof(buffer))) > 0;) {
    seen.append(buffer, static_cast<size_t>(count));
    if (!seen.ends_with(prompt) || next > lines.size()) continue;
    const std::string typed = next < lines.size() ? lines[next] + "\n" : "\x04";
    ++next;
    if (write(terminal, typed.data(), typed.size()) < 0) break;
  }
  close(terminal);
  return {wait_for(child), seen, ""};
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "attend-cli-XXXXXX";
  path_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::string TemporaryFolder::file(const std::string& name, const std::string& contents) const {
  std::ofstream(path(name), std::ios::binary) << contents;
  return path(name);
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace attend
