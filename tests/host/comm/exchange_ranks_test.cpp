// Messages between ranks: what arrives, and what is sent for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "tests/host/comm/rounds_ranks.hpp"
#include "tests/messages.hpp"

namespace maki {
namespace {

using test::Bytes;
using test::expect_arrived;
using test::prepare;
using test::Round;

class Exchange : public testing::Test {
 protected:
  // A communicator of its own, so that only what the test sends is counted.
  Communicator ranks = Communicator::world().split(0, Communicator::world().rank());
};

TEST_F(Exchange, RandomSparseRoundsArriveAndNothingEmptyIsSent) {
  std::uint64_t messages = 0, bytes = 0;
  for (unsigned round = 0; round < 20; ++round) {
    auto r = prepare(ranks, round, 1, true, std::size_t{1} << 30);
    ranks.exchange(r.out, r.in, static_cast<int>(round % 3));
    expect_arrived(ranks, r, round, 1, true);
    messages += r.messages, bytes += r.bytes;
  }
  EXPECT_EQ(ranks.traffic().messages, messages);
  EXPECT_EQ(ranks.traffic().bytes, bytes);
  EXPECT_EQ(ranks.traffic().empty, 0u);
}

TEST_F(Exchange, PiecesOfAnySizeWithFewInFlight) {
  std::uint64_t messages = 0;
  for (const std::size_t piece : {777, 4096, 65536}) {
    ranks.set_limits({.piece_bytes = piece, .messages = 3, .bytes = 2 * piece});
    auto r = prepare(ranks, 200, 2, false, piece);
    ranks.exchange(r.out, r.in);
    expect_arrived(ranks, r, 200, 2, false);
    messages += r.messages;
  }
  EXPECT_EQ(ranks.traffic().messages, messages);
  EXPECT_EQ(ranks.traffic().empty, 0u);
}

TEST_F(Exchange, OneInFlightDoesNotLockUpRings) {
  ranks.set_limits({.piece_bytes = 100000, .messages = 1, .bytes = 1});
  const int n = ranks.size(), me = ranks.rank();
  // Beyond what MPI sends before the other side asks for it; the lists are in opposite orders.
  std::vector<Bytes> sent(n, Bytes(300001)), received(n, Bytes(300001));
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (int r = 0; r < n; ++r) {
    std::fill(sent[r].begin(), sent[r].end(), static_cast<unsigned char>(16 * me + r));
    out.push_back({r, sent[r].data(), sent[r].size()});
    in.insert(in.begin(), {r, received[r].data(), received[r].size()});
  }
  ranks.exchange(out, in);
  for (int r = 0; r < n; ++r) EXPECT_EQ(received[r], Bytes(300001, static_cast<unsigned char>(16 * r + me)));
}

TEST_F(Exchange, SeveralUnderWayAtOnceWhileOtherCallsAreMade) {
  std::vector<Round> rounds;
  std::vector<Communicator::Transfer> transfers;
  for (unsigned i = 0; i < 3; ++i) rounds.push_back(prepare(ranks, 300 + i, 2, true, std::size_t{1} << 30));
  for (unsigned i = 0; i < 3; ++i) transfers.push_back(ranks.begin_exchange(rounds[i].out, rounds[i].in, int(i)));
  std::vector<std::uint64_t> one{1};
  ranks.sum(one);
  EXPECT_EQ(one[0], std::uint64_t(ranks.size()));
  for (unsigned i : {2, 0, 1}) {
    if (i == 0)
      while (!transfers[i].progress()) {
      }
    transfers[i].wait();
    expect_arrived(ranks, rounds[i], 300 + i, 2, true);
  }
}

TEST_F(Exchange, NothingAtAll) {
  ranks.exchange({}, {});
  EXPECT_EQ(ranks.traffic().messages, 0u);
}

TEST_F(Exchange, WrongRanksTagsAndSizesAreErrors) {
  char byte = 0, other = 0;
  const Communicator::Outgoing nowhere{ranks.size(), &byte, 1}, own{ranks.rank(), &byte, 1};
  const Communicator::Incoming shorter{ranks.rank(), &other, 0}, same{ranks.rank(), &other, 1};
  EXPECT_THROW(ranks.exchange({&nowhere, 1}, {}), Error);
  EXPECT_THROW(ranks.exchange({&own, 1}, {&shorter, 1}), Error);
  EXPECT_THROW(ranks.exchange({}, {&same, 1}), Error);
  EXPECT_THROW(ranks.exchange({&own, 1}, {&same, 1}, -1), Error);
  EXPECT_THROW(ranks.set_limits({.piece_bytes = 0}), Error);
}

TEST_F(Exchange, AMessageOfAnotherSizeThanExpectedNamesTheSender) {
  if (ranks.size() == 1) return;
  for (const std::size_t expected : {1, 3}) {
    const std::vector<char> two(2);
    std::vector<char> place(3);
    const Communicator::Outgoing out{1, two.data(), 2};
    const Communicator::Incoming in{0, place.data(), expected};
    if (ranks.rank() == 0) ranks.exchange({&out, 1}, {});
    if (ranks.rank() != 1) continue;
    test::expect_contains(test::error_of([&] {
                            ranks.exchange({}, {&in, 1});
                          }),
                          {"rank 0 sent a message of another size"});
  }
  ranks.barrier();
}

}  // namespace
}  // namespace maki
