// Transfers that streams wait for, and what waiting for a stream makes of them. On the CPU no stream waits.
#if defined(MAKI_BACKEND_CUDA)
#include "host/comm/payload_transfer.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using Look = Communicator::Look;

// What the transfer says, and what became of it.
struct Story {
  int looks_to_the_end = 0;  // -1: the peer is lost
  int looks = 0;
  bool ended = false;
};

class Told final : public PayloadTransfer {
 public:
  explicit Told(Story& story) : story_(story) {}
  ~Told() override { story_.ended = true; }
  Look look() override {
    if (story_.looks_to_the_end < 0) throw Error("rank 1 is not heard from");
    return ++story_.looks >= story_.looks_to_the_end ? Look::kDone : Look::kNothing;
  }
  std::vector<int> pending() const override { return {0}; }

 private:
  Story& story_;
};

TEST(FollowedTransfers, AreLookedAtWhileAStreamIsWaitedFor) {
  Story story{3};
  FollowedTransfers transfers(Communicator::self());
  transfers.add(std::make_unique<Told>(story));
  for (int i = 0; i < 3; ++i) test::test_stream().synchronize();
  EXPECT_EQ(story.looks, 3);
  EXPECT_TRUE(story.ended);
}

TEST(FollowedTransfers, AreWaitedForInTheEnd) {
  Story story{5};
  {
    FollowedTransfers transfers(Communicator::self());
    transfers.add(std::make_unique<Told>(story));
  }
  EXPECT_EQ(story.looks, 5);
}

TEST(FollowedTransfers, ALostPeerIsToldWhereAStreamIsWaitedForAndAllAreGivenUp) {
  Story lost{-1}, other{1000};
  FollowedTransfers these(Communicator::self()), those(Communicator::self());
  those.add(std::make_unique<Told>(other));
  these.add(std::make_unique<Told>(lost));
  EXPECT_THROW(test::test_stream().synchronize(), Error);
  EXPECT_TRUE(lost.ended);
  EXPECT_TRUE(other.ended);
  EXPECT_NO_THROW(test::test_stream().synchronize());
}

}  // namespace
}  // namespace maki
#endif
