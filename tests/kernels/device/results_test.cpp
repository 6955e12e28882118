#include "kernels/device/results.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "tests/test_stream.hpp"

namespace maki {
namespace {

TEST(Results, ComeWithOneWaitAndAreZeroWhereNobodyWrote) {
  const Stream& stream = test::test_stream();
  Results results("test.results");
  for (const std::uint32_t value : {7u, 9u}) {
    const auto first = results.make<std::uint32_t>(stream);
    const auto second = results.make<double>(stream);
    copy_to_device(stream, first.place, &value, sizeof value);
    const std::uint64_t waits = transfer_counters().waits;
    results.fetch(stream);
    EXPECT_EQ(transfer_counters().waits, waits + 1);
    EXPECT_EQ(results[first], value);
    EXPECT_EQ(results[second], 0.0);
  }
}

TEST(Results, AreNoMoreThanThereIsRoomFor) {
  const Stream& stream = test::test_stream();
  Results results("test.results");
  for (std::size_t k = 0; k < Results::kRoom / Results::kAlignment; ++k) results.make<std::uint32_t>(stream);
  EXPECT_THROW(results.make<std::uint32_t>(stream), std::logic_error);
}

}  // namespace
}  // namespace maki
