#include "attend/search/line_queue.h"

#include <utility>

namespace attend {

LineQueue::Line* LineQueue::add(std::size_t pieces, int64_t cost, int64_t most_cost) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || lines_.empty() || cost_ + cost <= most_cost; });
  if (closed_) return nullptr;
  cost_ += cost;
  lines_.push_back({.pieces = Pieces(pieces), .missing = pieces, .cost = cost, .error = nullptr});
  if (pieces == 0) changed_.notify_all();
  return &lines_.back();
}

void LineQueue::finish_piece(Line& line, std::size_t piece, std::vector<Answer> best,
                             const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  line.pieces[piece] = std::move(best);
  if (error) line.error = error;
  if (--line.missing == 0 && &line == &lines_.front()) changed_.notify_all();
}

void LineQueue::end(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  error_ = std::move(error);
  changed_.notify_all();
}

void LineQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::optional<LineQueue::Pieces> LineQueue::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return lines_.empty() ? ended_ : lines_.front().missing == 0; });
  if (lines_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  if (lines_.front().error) std::rethrow_exception(lines_.front().error);
  Pieces pieces = std::move(lines_.front().pieces);
  cost_ -= lines_.front().cost;
  lines_.pop_front();
  changed_.notify_all();
  return pieces;
}

}  // namespace attend
