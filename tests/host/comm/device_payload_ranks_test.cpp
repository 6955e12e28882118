// Messages between device memories: what arrives is the same by either path.
#include "host/comm/device_payload.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"

namespace maki {
namespace {

// Rank `from` sends `to` this many words in a round, and these; none for some pairs, and to itself as well.
std::size_t length(int from, int to, int round) {
  return (from * 7 + to * 5 + round * 3) % 4 * (1000 + 37 * from + to);
}
std::uint32_t word(int from, int to, int round, std::size_t i) {
  return static_cast<std::uint32_t>(((from * 16 + to) * 8 + round) * 1000003u + i);
}

void exchange_rounds(PayloadPath path) {
  const auto ranks = Communicator::world();
  const int me = ranks.rank();
  const Stream stream;
  DevicePayload payload(ranks, path);
  for (int round = 0; round < 4; ++round) {
    std::vector<DeviceBuffer<std::uint32_t>> sent, received;
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int r = 0; r < ranks.size(); ++r) {
      std::vector<std::uint32_t> words(length(me, r, round));
      for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(me, r, round, i);
      sent.emplace_back("sent").upload(stream, words);
      received.emplace_back("received", length(r, me, round));
      out.push_back({r, sent.back().data(), 4 * words.size()});
      in.push_back({r, received.back().data(), 4 * received.back().size()});
    }
    payload.exchange(stream, out, in, round);
    for (int r = 0; r < ranks.size(); ++r) {
      const auto words = received[r].download(stream);
      ASSERT_EQ(words.size(), length(r, me, round));
      for (std::size_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], word(r, me, round, i)) << "from " << r;
    }
  }
}

TEST(DevicePayload, ArrivesByStaging) { exchange_rounds(PayloadPath::kStaged); }

TEST(DevicePayload, ArrivesByTheChosenPathWhichHasAReason) {
  const PayloadChoice choice = choose_payload_path();
  EXPECT_FALSE(choice.reason.empty());
  if (std::string(backend_name()) == "cpu") {
    EXPECT_EQ(choice.path, PayloadPath::kDirect);
  }
  exchange_rounds(choice.path);
}

}  // namespace
}  // namespace maki
