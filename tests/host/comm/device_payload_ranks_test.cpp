// Messages between device memories: what arrives is the same by either path.
#include "host/comm/device_payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host/comm/job.hpp"
#include "host/comm/payload_transfer.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// Rank `from` sends `to` this many words in a round, and these; none for some pairs, and to itself as well.
std::size_t length(int from, int to, int round) {
  return (from * 7 + to * 5 + round * 3) % 4 * (1000 + 37 * from + to);
}
std::uint32_t word(int from, int to, int round, std::size_t i) {
  return static_cast<std::uint32_t>(((from * 16 + to) * 8 + round) * 1000003u + i);
}

// One round of messages of every rank to every other and to itself, in device memory.
struct Round {
  std::vector<DeviceBuffer<std::uint32_t>> sent, received;
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::uint64_t messages = 0, bytes = 0;  // to others
};

Round prepare(const Communicator& ranks, const Stream& stream, int number, std::size_t scale) {
  Round round;
  const int me = ranks.rank();
  for (int r = 0; r < ranks.size(); ++r) {
    std::vector<std::uint32_t> words(scale * length(me, r, number));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(me, r, number, i);
    round.sent.emplace_back("sent").upload(stream, words);
    round.received.emplace_back("received", scale * length(r, me, number));
    round.out.push_back({r, round.sent.back().data(), 4 * words.size()});
    round.in.push_back({r, round.received.back().data(), 4 * round.received.back().size()});
    if (r == me || words.empty()) continue;
    ++round.messages;
    round.bytes += 4 * words.size();
  }
  return round;
}

void expect_arrived(const Communicator& ranks, const Stream& stream, const Round& round, int number,
                    std::size_t scale) {
  for (int r = 0; r < ranks.size(); ++r) {
    const auto words = round.received[r].download(stream);
    ASSERT_EQ(words.size(), scale * length(r, ranks.rank(), number));
    for (std::size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(words[i], word(r, ranks.rank(), number, i)) << "from " << r;
    }
  }
}

// By staging, and by the path that is chosen for these ranks.
class Payload : public testing::TestWithParam<bool> {
 protected:
  Communicator ranks = Communicator::world().split(0, Communicator::world().rank());
  const PayloadPath path = GetParam() ? PayloadPath::kStaged : choose_payload_path(ranks).path;
  const Stream& stream = test::test_stream();
};

TEST_P(Payload, ArrivesAndIsCounted) {
  DevicePayload payload(ranks, path);
  std::uint64_t messages = 0, bytes = 0;
  for (int number = 0; number < 4; ++number) {
    const Round round = prepare(ranks, stream, number, 1);
    payload.exchange(stream, round.out, round.in, number);
    expect_arrived(ranks, stream, round, number, 1);
    messages += round.messages, bytes += round.bytes;
  }
  EXPECT_EQ(payload.traffic().messages, messages);
  EXPECT_EQ(payload.traffic().bytes, bytes);
  EXPECT_EQ(ranks.traffic().bytes, path == PayloadPath::kNccl ? 0 : bytes) << "MPI counts what goes by MPI";
  EXPECT_EQ(ranks.traffic().empty, 0u);
}

// Many pieces a message; what is held at once stays within the bound that the header states.
TEST_P(Payload, ArrivesInPiecesWithBoundedStaging) {
  ranks.set_limits({.piece_bytes = 4096});
  DevicePayload payload(ranks, path);
  const Round round = prepare(ranks, stream, 1, 20);
  payload.exchange(stream, round.out, round.in);
  expect_arrived(ranks, stream, round, 1, 20);
  const auto comes = [](const Communicator::Incoming& message) { return message.bytes > 0; };
  const std::size_t receives = std::count_if(round.in.begin(), round.in.end(), comes);
  EXPECT_LE(payload.bytes(), 4096 * (16 + 2 * receives));
}

TEST_P(Payload, SeveralUnderWayWhileOtherCallsAreMade) {
  DevicePayload payload(ranks, path);
  std::vector<Round> rounds;
  std::vector<DevicePayload::Transfer> transfers;
  for (int i = 0; i < 3; ++i) rounds.push_back(prepare(ranks, stream, i, 3));
  for (int i = 0; i < 3; ++i) transfers.push_back(payload.begin(stream, rounds[i].out, rounds[i].in, i));
  std::vector<std::uint64_t> one{1};
  ranks.sum(one);
  EXPECT_EQ(one[0], std::uint64_t(ranks.size()));
  while (!transfers[2].progress()) {
  }
  for (int i : {2, 0, 1}) {
    transfers[i].finish(stream);
    EXPECT_TRUE(transfers[i].progress());
    expect_arrived(ranks, stream, rounds[i], i, 3);
  }
}

TEST_P(Payload, SeveralMessagesBetweenTwoRanksKeepTheirOrder) {
  if (path == PayloadPath::kStaged) ranks.set_limits({.piece_bytes = 1000});
  DevicePayload payload(ranks, path);
  const Round first = prepare(ranks, stream, 1, 1), second = prepare(ranks, stream, 2, 1);
  auto out = first.out;
  auto in = first.in;
  out.insert(out.end(), second.out.begin(), second.out.end());
  in.insert(in.end(), second.in.begin(), second.in.end());
  payload.exchange(stream, out, in);
  expect_arrived(ranks, stream, first, 1, 1);
  expect_arrived(ranks, stream, second, 2, 1);
}

INSTANTIATE_TEST_SUITE_P(Paths, Payload, testing::Bool(),
                         [](const auto& info) { return info.param ? "Staged" : "Chosen"; });

TEST(DevicePayload, PathHasAReason) {
  const PayloadChoice choice = choose_payload_path(Communicator::world());
  EXPECT_FALSE(choice.reason.empty());
  if (std::string(backend_name()) == "cpu") {
    EXPECT_EQ(choice.path, PayloadPath::kDirect);
  }
}

#if defined(MAKI_BACKEND_CUDA)
// NCCL by itself, on every machine with a GPU: each rank is alone and sends to itself.
TEST(DevicePayload, NcclSendsToItself) {
  if (nccl_version().empty()) GTEST_SKIP() << "this build is without NCCL";
  const auto alone = Communicator::self();
  const auto nccl = start_nccl(alone);
  const Stream& stream = test::test_stream();
  DeviceBuffer<std::uint32_t> sent("sent"), received("received", 100000);
  std::vector<std::uint32_t> words(received.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(0, 0, 0, i);
  sent.upload(stream, words);
  PayloadMessages messages;
  for (std::size_t begin : {0, 60000}) {  // two messages, in order
    const std::size_t bytes = 4 * (begin == 0 ? 60000 : 40000);
    messages.out.push_back({0, sent.data() + begin, bytes});
    messages.in.push_back({0, received.data() + begin, bytes});
  }
  const auto transfer = begin_nccl(alone, nccl, stream, std::move(messages));
  alone.wait(
      "sending to itself", [&] { return transfer->look(); }, [] { return std::vector<int>{}; });
  EXPECT_EQ(received.download(stream), words);
}
#endif

}  // namespace
}  // namespace maki
