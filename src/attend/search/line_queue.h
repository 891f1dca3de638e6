#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attend/search/answers.h"

namespace attend {

/// The lines of one call in the order in which they came, while workers search for translations of
/// their pieces in any order. Many threads may use it; the last one to hold it frees it, so that a
/// call that ends early need not wait for its sentences.
class LineQueue {
 public:
  /// The answers for each piece of a line, best first; of a blank line, nothing.
  using Pieces = std::vector<std::vector<Answer>>;
  struct Line {
    Pieces pieces;
    std::size_t missing = 0;  ///< pieces still in work
    int64_t cost = 0;
    std::exception_ptr error;
  };

  /// Adds a line of so many pieces. Waits while lines of more than `most_cost` in all are in the
  /// queue, this one included, unless it is the only one. The line stays in its place in memory
  /// until next() gives it. Null once the queue has been closed.
  Line* add(std::size_t pieces, int64_t cost, int64_t most_cost);
  void finish_piece(Line& line, std::size_t piece, std::vector<Answer> best,
                    const std::exception_ptr& error);
  /// No more lines will come, because of `error` or none.
  void end(std::exception_ptr error = nullptr);
  /// Nobody will ask for lines any more.
  void close();

  /// The next line, once it is complete; nothing at the end. Throws what finish_piece or end were
  /// given, in the line's turn.
  std::optional<Pieces> next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Line> lines_;
  int64_t cost_ = 0;
  bool ended_ = false;
  bool closed_ = false;
  std::exception_ptr error_;
};

}  // namespace attend
