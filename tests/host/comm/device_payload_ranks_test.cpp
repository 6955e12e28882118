// Messages between device memories: what arrives is the same by either path.
#include "host/comm/device_payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/comm/job.hpp"
#include "host/comm/payload_transfer.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "tests/host/comm/rounds_ranks.hpp"
#include "tests/messages.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

// A round in device memory.
struct DeviceRound {
  DeviceRound(const Communicator& ranks, const Stream& stream, unsigned number, int each)
      : ranks(ranks), stream(stream), number(number), each(each),
        host(test::prepare(ranks, number, each, false, std::size_t{1} << 30)), out(host.out), in(host.in) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      sent.emplace_back("sent").upload(stream, host.sent[i]);
      received.emplace_back("received", host.received[i].size());
      out[i].data = sent.back().data();
      in[i].data = received.back().data();
    }
  }
  void expect_arrived() {
    for (std::size_t i = 0; i < received.size(); ++i) host.received[i] = received[i].download(stream);
    test::expect_arrived(ranks, host, number, each, false);
  }

  const Communicator& ranks;
  const Stream& stream;
  unsigned number;
  int each;
  test::Round host;
  std::vector<DeviceBuffer<unsigned char>> sent, received;
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
};

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
    DeviceRound round(ranks, stream, number, 1);
    payload.exchange(stream, round.out, round.in, number);
    round.expect_arrived();
    messages += round.host.messages, bytes += round.host.bytes;
  }
  EXPECT_EQ(ranks.traffic().messages, path == PayloadPath::kNccl ? 0 : messages);
  EXPECT_EQ(ranks.traffic().bytes, path == PayloadPath::kNccl ? 0 : bytes) << "MPI counts what goes by MPI";
  EXPECT_EQ(ranks.traffic().empty, 0u);
}

// Many pieces a message; what is held at once stays within the bound that the header states.
TEST_P(Payload, ArrivesInPiecesWithBoundedStaging) {
  ranks.set_limits({.piece_bytes = 4096});
  DevicePayload payload(ranks, path);
  DeviceRound round(ranks, stream, 4, 8);  // some twice the bound and more
  payload.exchange(stream, round.out, round.in);
  round.expect_arrived();
  const auto comes = [](const Communicator::Incoming& message) { return message.bytes > 0; };
  const std::size_t receives = std::count_if(round.in.begin(), round.in.end(), comes);
  EXPECT_LE(payload.bytes(), 4096 * (16 + 2 * receives));
}

TEST_P(Payload, SeveralUnderWayWhileOtherCallsAreMade) {
  DevicePayload payload(ranks, path);
  std::vector<DeviceRound> rounds;
  std::vector<DevicePayload::Transfer> transfers;
  for (int i = 0; i < 3; ++i) rounds.emplace_back(ranks, stream, i, 3);
  for (int i = 0; i < 3; ++i) transfers.push_back(payload.begin(stream, rounds[i].out, rounds[i].in, i));
  std::vector<std::uint64_t> one{1};
  ranks.sum(one);
  EXPECT_EQ(one[0], std::uint64_t(ranks.size()));
  while (!transfers[2].progress()) {
  }
  for (int i : {2, 0, 1}) {
    transfers[i].finish(stream);
    EXPECT_TRUE(transfers[i].progress());
    rounds[i].expect_arrived();
  }
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

TEST(DevicePayload, OnlyKnownPathsCanBeAskedFor) {
  const char* const text = std::getenv("MAKI_PAYLOAD");
  const std::string before = text ? text : "";
  for (const char* value : {"foo", "NCCL"}) {
    setenv("MAKI_PAYLOAD", value, 1);
    test::expect_contains(test::error_of([] { choose_payload_path(Communicator::world()); }),
                          {value, "nccl, mpi or staged"});
  }
  if (Communicator::world().rank() + 1 < Communicator::world().size()) setenv("MAKI_PAYLOAD", "", 1);
  test::expect_contains(test::error_of([] { choose_payload_path(Communicator::world()); }), {"NCCL"});
  setenv("MAKI_PAYLOAD", "", 1);
  EXPECT_NO_THROW(choose_payload_path(Communicator::world()));
  text ? setenv("MAKI_PAYLOAD", before.c_str(), 1) : unsetenv("MAKI_PAYLOAD");
}

#if defined(MAKI_BACKEND_CUDA)
std::uint32_t word(std::size_t i) { return static_cast<std::uint32_t>(1000003u + i); }

// NCCL by itself, on every machine with a GPU: each rank is alone and sends to itself.
TEST(DevicePayload, NcclSendsToItself) {
  if (nccl_version().empty()) GTEST_SKIP() << "this build is without NCCL";
  const auto alone = Communicator::self();
  const auto nccl = start_nccl(alone);
  const Stream& stream = test::test_stream();
  DeviceBuffer<std::uint32_t> received("received", 100000);
  std::vector<std::uint32_t> words(received.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(i);
  test::OnDevice sent(words);
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
