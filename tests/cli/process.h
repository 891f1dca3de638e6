#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attend {

/// What became of a process.
struct Finished {
  int status = -1;  ///< the exit status; 128 + N where signal N ended it
  std::string out;
  std::string err;
};

/// Runs the command `attend` with these arguments and this standard input.
Finished run(const std::vector<std::string>& arguments, const std::string& input = "");

/// Runs it with a terminal of 100 columns for its stderr, which `err` is what was drawn on.
Finished run_on_terminal(const std::vector<std::string>& arguments);

/// Runs it with a terminal for all its streams, on which somebody waits for `prompt`, types a line,
/// waits again, and, after the last line, ends the input with Ctrl-D. `out` is what was seen.
Finished converse(const std::vector<std::string>& arguments, const std::string& prompt,
                  const std::vector<std::string>& lines);

/// Runs it with an address space of so many bytes at most.
Finished run_in_memory(const std::vector<std::string>& arguments, size_t bytes);

/// Runs it where no file may grow beyond so many bytes.
Finished run_with_file_limit(const std::vector<std::string>& arguments, const std::string& input,
                             size_t bytes);

/// Starts it, sends it this signal as soon as the file `cue` is there, and waits for its end.
Finished run_until_file(const std::vector<std::string>& arguments, const std::string& cue,
                        int signal);

/// The same as soon as `folder` has an entry.
Finished run_until_entry(const std::vector<std::string>& arguments, const std::string& folder,
                         int signal);

/// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and gives its path.
  std::string file(const std::string& name, const std::string& contents) const;

 private:
  std::string path_;
};

std::string contents_of(const std::string& path);

}  // namespace attend
