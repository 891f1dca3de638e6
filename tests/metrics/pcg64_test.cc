#include "attend/metrics/pcg64.h"

#include <gtest/gtest.h>

#include "tests/metrics/fixture.h"

namespace attend {
namespace {

TEST(Pcg64, DrawsWhatNumpyDoes) {
  const nlohmann::json fixture = read_fixture("significance_fixture.json");
  for (const nlohmann::json& expected : fixture["draws"]) {
    Pcg64 random(expected["seed"].get<uint64_t>());
    for (const auto& number : expected["raw"]) {
      EXPECT_EQ(random.next_uint64(), number.get<uint64_t>());
    }
    for (const auto& [name, bound] :
         {std::pair("choice 3004", 3004U), {"choice 1", 1U}, {"choice 3000000000", 3000000000U}}) {
      for (const auto& index : expected[name]) {
        EXPECT_EQ(random.uniform_index(bound), index.get<uint32_t>()) << name;
      }
    }
    Pcg64Bits bits(random);
    for (const auto& bit : expected["bits"]) EXPECT_EQ(bits.next(), bit.get<int>() == 1);
    for (const auto& index : expected["choice 7"]) {
      EXPECT_EQ(random.uniform_index(7), index.get<uint32_t>());
    }
  }
}

}  // namespace
}  // namespace attend
