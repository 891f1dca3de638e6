#include <gtest/gtest.h>

#include "attend/search/hypothesis_score.h"
#include "tests/search/toy_search.h"

namespace attend {
namespace {

struct Partial {
  std::vector<int32_t> output;
  double augmented = 0;  ///< Θ of the paper, which later steps add to
};
struct GroupOfPaper {
  std::vector<Partial> beams = {{}};
  std::vector<Ranked> finished;
};

std::vector<Partial> continuations(const ToyModel& model, const std::vector<Partial>& beams,
                                   const std::vector<int32_t>& taken, double strength) {
  std::vector<Partial> all;
  for (const Partial& beam : beams) {
    for (int32_t token = 2; token < model.vocabulary(); ++token) {
      Partial next = beam;
      next.output.push_back(token);
      const auto same = std::count(taken.begin(), taken.end(), token);
      next.augmented += static_cast<double>(model.log_prob(beam.output, token)) -
                        strength * static_cast<double>(same);
      all.push_back(std::move(next));
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Partial::augmented);
  return all;
}

/// Algorithm 1 of Vijayakumar et al. 2016, with the Hamming diversity of §4.2, without an early
/// end. A finished output is ranked by its log P. What ends and what goes on is as beam_search.h
/// says of a beam.
std::vector<GroupOfPaper> algorithm_1(const ToyModel& model, std::size_t longest,
                                      const SearchOptions& options) {
  const auto size = static_cast<std::size_t>(options.beam_size / options.beam_groups);
  std::vector<GroupOfPaper> groups(static_cast<std::size_t>(options.beam_groups));
  for (std::size_t t = 0; t <= longest; ++t) {
    std::vector<int32_t> taken;
    for (GroupOfPaper& group : groups) {
      const auto all = continuations(model, group.beams, taken, options.diversity_strength);
      group.beams.clear();
      for (std::size_t rank = 0; rank < all.size() && group.beams.size() < size; ++rank) {
        std::vector<int32_t> output = all[rank].output;
        if (output.back() != ToyModel::kEos) {
          if (t < longest) group.beams.push_back(all[rank]);
          continue;
        }
        if (t < longest && rank >= size) continue;
        output.pop_back();
        group.finished.push_back(
            {output, length_penalized(toy_log_prob(model, output), std::ssize(output) + 1,
                                      options.length_penalty)});
        if (size == 1) break;
      }
      for (const Partial& beam : group.beams) taken.push_back(beam.output.back());
    }
  }
  for (GroupOfPaper& group : groups) {
    std::ranges::stable_sort(group.finished, std::ranges::greater(), &Ranked::score);
  }
  return groups;
}

/// In rounds, each group's best that is not there yet.
std::vector<Ranked> n_best_of(std::vector<GroupOfPaper> groups, const SearchOptions& options) {
  std::vector<Ranked> best;
  for (GroupOfPaper& group : groups) {
    // What a group holds on to.
    const auto most = static_cast<std::size_t>(options.beam_size / options.beam_groups);
    group.finished.resize(std::min(group.finished.size(), most));
  }
  const auto first_new = [&best](const GroupOfPaper& group) {
    return std::ranges::find_if(group.finished, [&](const Ranked& each) {
      return std::ranges::find(best, each.output, &Ranked::output) == best.end();
    });
  };
  for (bool more = true; more;) {
    more = false;
    std::ranges::stable_sort(groups, [&](const GroupOfPaper& a, const GroupOfPaper& b) {
      const auto first = first_new(a), second = first_new(b);
      if (first == a.finished.end() || second == b.finished.end()) {
        return first != a.finished.end() && second == b.finished.end();
      }
      return first->score > second->score;
    });
    for (const GroupOfPaper& group : groups) {
      const auto found = first_new(group);
      if (found == group.finished.end() || std::ssize(best) == options.n_best) continue;
      best.push_back(*found);
      more = true;
    }
  }
  std::ranges::stable_sort(best, std::ranges::greater(), &Ranked::score);
  return best;
}

TEST(DiverseBeamSearch, IsAlgorithm1OfVijayakumarEtAl) {
  std::size_t differ = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const ToyModel model(seed, 8);
    for (const auto& [groups, strength] : std::vector<std::pair<int64_t, double>>{
             {2, 0.5}, {2, 2.0}, {3, 0.7}, {6, 1.0}, {3, 0.0}}) {
      const SearchOptions options{.beam_size = 6,
                                  .max_length = 5,
                                  .n_best = groups,
                                  .beam_groups = groups,
                                  .diversity_strength = strength};
      const std::vector<Ranked> expected = n_best_of(algorithm_1(model, 5, options), options);
      const auto found = toy_search(model, options);
      expect_found(found, expected, expected.size());

      const SearchOptions plain{.beam_size = 6, .max_length = 5, .n_best = groups};
      const auto beam = toy_search(model, plain);
      differ += found.back().tokens != beam.back().tokens ? 1 : 0;

      SearchOptions one = options;
      one.n_best = 1;
      EXPECT_EQ(toy_search(model, one)[0].tokens, found[0].tokens) << "whenever it stops";
    }
  }
  EXPECT_GT(differ, 100U);
}

TEST(DiverseBeamSearch, OneGroupIsBeamSearch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyModel model(seed);
    const auto beam = toy_search(model, {.max_length = 5, .n_best = 4});
    // Without a cost for likeness every group does what a smaller beam does.
    const auto groups = toy_search(
        model, {.beam_size = 8, .max_length = 5, .beam_groups = 2, .diversity_strength = 0});
    EXPECT_EQ(groups[0].tokens, beam[0].tokens);
  }
}

}  // namespace
}  // namespace attend
