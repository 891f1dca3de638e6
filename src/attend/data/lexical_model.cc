#include "attend/data/lexical_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr double kLeastProbability = 1e-6;

/// A pair of tokens. The source is 0 for the empty word, else its id and 1.
struct Entry {
  uint32_t source = 0;
  int32_t target = kNone;
  float probability = 0;
  double count = 0;  ///< expected, of the iteration under way

  static constexpr int32_t kNone = -1;
  bool empty() const { return target == kNone; }
};

/// Pairs of tokens: a hash table with open addressing. What it holds and in which order depends on
/// what was asked of it alone.
class EntryTable {
 public:
  EntryTable() : slots_(kFirstSlots) {}

  int64_t count() const { return count_; }
  /// Room for so many more: no Entry moves while they are added.
  void reserve(std::size_t more) {
    const auto needed = static_cast<std::size_t>(count_) + more;
    std::size_t slots = slots_.size();
    while (needed * 2 > slots) slots *= 2;
    if (slots != slots_.size()) rebuild(slots, [](const Entry&) { return true; });
  }
  Entry& find_or_add(uint32_t source, int32_t target) {
    Entry& found = slots_[place_of(source, target)];
    if (found.empty()) {
      found.source = source;
      found.target = target;
      ++count_;
    }
    return found;
  }
  /// nullptr where it is not there.
  Entry* find(uint32_t source, int32_t target) {
    Entry& found = slots_[place_of(source, target)];
    return found.empty() ? nullptr : &found;
  }
  template <typename Use>
  void for_each(Use use) {
    for (Entry& each : slots_) {
      if (!each.empty()) use(each);
    }
  }
  template <typename Keep>
  void keep_only(const Keep& keep) {
    rebuild(slots_.size(), keep);
  }

 private:
  static constexpr std::size_t kFirstSlots = 1 << 12;  // a power of two, as ever after

  std::size_t place_of(uint32_t source, int32_t target) const {
    const uint64_t key = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(target);
    uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15ULL;  // Fibonacci hashing, Knuth 6.4
    hash ^= hash >> 32;
    std::size_t place = hash & (slots_.size() - 1);
    while (!slots_[place].empty() &&
           (slots_[place].source != source || slots_[place].target != target)) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  template <typename Keep>
  void rebuild(std::size_t slots, const Keep& keep) {
    const std::vector<Entry> before = std::exchange(slots_, std::vector<Entry>(slots));
    count_ = 0;
    for (const Entry& each : before) {
      if (each.empty() || !keep(each)) continue;
      slots_[place_of(each.source, each.target)] = each;
      ++count_;
    }
  }

  std::vector<Entry> slots_;
  int64_t count_ = 0;
};

class Model1 {
 public:
  explicit Model1(const LexicalModelOptions& options) : options_(options) {}

  /// The first expectation: with equal probabilities, every source token of a sentence is as good.
  void count_first(std::span<const int32_t> source, std::span<const int32_t> target) {
    const double share = 1.0 / static_cast<double>(source.size() + 1);
    for (const int32_t token : target) {
      table_.reserve(source.size() + 1);
      for_each_source(source,
                      [&](uint32_t each) { table_.find_or_add(each, token).count += share; });
      if (table_.count() > options_.most_entries) drop_rare();
    }
  }

  /// Returns log P(target | source).
  double count(std::span<const int32_t> source, std::span<const int32_t> target) {
    double log_likelihood = 0;
    for (const int32_t token : target) {
      double sum = 0;
      found_.clear();
      for_each_source(source, [&](uint32_t each) {
        Entry* entry = table_.find(each, token);
        if (entry == nullptr) return;
        found_.push_back(entry);
        sum += static_cast<double>(entry->probability);
      });
      if (!(sum > 0)) continue;  // all was dropped
      for (Entry* each : found_) each->count += static_cast<double>(each->probability) / sum;
      log_likelihood += std::log(sum / static_cast<double>(source.size() + 1));
    }
    return log_likelihood;
  }

  void maximise() {
    std::vector<double> totals(static_cast<std::size_t>(options_.source_vocabulary) + 1);
    table_.for_each([&](const Entry& each) { totals[each.source] += each.count; });
    table_.for_each([&](Entry& each) {
      const double total = totals[each.source];
      each.probability = total > 0 ? static_cast<float>(each.count / total) : 0.0F;
      each.count = 0;
    });
    table_.keep_only([](const Entry& each) {
      return static_cast<double>(each.probability) >= kLeastProbability;
    });
  }

  std::vector<std::vector<LexicalTarget>> best() {
    std::vector<std::vector<LexicalTarget>> targets(
        static_cast<std::size_t>(options_.source_vocabulary));
    table_.for_each([&](const Entry& each) {
      if (each.source == 0) return;
      targets[each.source - 1].push_back({each.target, each.probability});
    });
    for (std::vector<LexicalTarget>& of_token : targets) {
      std::ranges::sort(of_token, [](const LexicalTarget& a, const LexicalTarget& b) {
        return std::tuple(-a.probability, a.token) < std::tuple(-b.probability, b.token);
      });
      const auto kept = std::min(of_token.size(), static_cast<std::size_t>(options_.most_targets));
      of_token.resize(kept);
      of_token.shrink_to_fit();
    }
    return targets;
  }

 private:
  template <typename Use>
  void for_each_source(std::span<const int32_t> source, const Use& use) const {
    use(0);  // the empty word
    for (const int32_t token : source) {
      if (token < 0 || token >= options_.source_vocabulary) {
        fail("a source token has the id {}; the vocabulary has {}", token,
             options_.source_vocabulary);
      }
      use(static_cast<uint32_t>(token) + 1);
    }
  }

  /// The half with the least evidence, at least.
  void drop_rare() {
    std::vector<float> counts;
    counts.reserve(static_cast<std::size_t>(table_.count()));
    table_.for_each([&](const Entry& each) { counts.push_back(static_cast<float>(each.count)); });
    const auto middle = counts.begin() + std::ssize(counts) / 2;
    std::nth_element(counts.begin(), middle, counts.end());
    table_.keep_only([&](const Entry& each) { return static_cast<float>(each.count) > *middle; });
  }

  const LexicalModelOptions& options_;
  EntryTable table_;
  std::vector<Entry*> found_;
};

}  // namespace

void LexicalModelOptions::validate() const {
  constexpr int64_t kMostIterations = 1000;
  if (iterations < 1 || iterations > kMostIterations) {
    fail_usage("iterations: found {}, expected from 1 to {}", iterations, kMostIterations);
  }
}

LexicalModel train_lexical_model(const ForEachPair& pairs, const LexicalModelOptions& options) {
  options.validate();
  Model1 model(options);
  LexicalModel made;
  pairs([&](std::span<const int32_t> source, std::span<const int32_t> target) {
    model.count_first(source, target);
  });
  model.maximise();
  for (int64_t i = 1; i < options.iterations; ++i) {
    double log_likelihood = 0;
    pairs([&](std::span<const int32_t> source, std::span<const int32_t> target) {
      log_likelihood += model.count(source, target);
    });
    made.log_likelihoods.push_back(log_likelihood);
    model.maximise();
  }
  made.targets = model.best();
  return made;
}

}  // namespace attend
