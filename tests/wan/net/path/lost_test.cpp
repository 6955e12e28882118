// How a path ends when nothing helps: on both sides, at its time, with a message that says what happened.
#include <gtest/gtest.h>

#include "tests/wan/net/path/pair.hpp"
#include "tests/wan/net/proxy.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

using Clock = std::chrono::steady_clock;

PathSettings impatient() {
  PathSettings settings = test::streams(3);
  settings.heartbeat = 0.1;
  settings.stream_timeout = 1;
  settings.patience = 2;
  settings.unmatched_limit = 1 << 20;  // so that what nobody asks for stays outstanding
  settings.connect_timeout = settings.handshake_timeout = 0.5;
  return settings;
}

struct End {
  std::string message;
  double down = 0;
  std::uint64_t outstanding = 0;
  Clock::time_point at;
};

template <class Call>
End end_of(Call call) {
  try {
    call();
  } catch (const PathError& error) {
    return {error.what(), error.seconds_down(), error.bytes_outstanding(), Clock::now()};
  }
  return {"no error came", 0, 0, Clock::now()};
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

class Lost : public testing::Test {
 protected:
  test::Log log_;
};

struct Ends {
  End here, there;
  double seconds = 0;  // from the fault on
};

// Both sides have messages on their way when the fault comes.
template <class Fault>
Ends ends_after(Path& here, Path& there, Fault fault) {
  const auto message = test::pattern(4000000, 1);
  std::vector<std::byte> buffer(1000);
  auto one = std::async(std::launch::async, [&] { return end_of([&] { here.send(1, message); }); });
  auto other = std::async(std::launch::async, [&] { return end_of([&] { there.receive(2, buffer); }); });
  Request unread = there.start_send(3, message);
  test::pause(0.05);
  const auto begin = Clock::now();
  fault();
  Ends ends{one.get(), other.get(), 0};
  ends.seconds = seconds(std::max(ends.here.at, ends.there.at) - begin);
  EXPECT_THROW(unread.wait(), PathError);
  return ends;
}

class LostLink : public Lost, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Silent, LostLink, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(FullRefused, LostLink, testing::Values(false));

TEST_P(LostLink, PastThePatienceBothSidesAreTold) {
  const bool silent = GetParam();
  Listener listener({"127.0.0.1", 0}, test::insecure(), impatient());
  test::Proxy proxy(listener.address());
  Path here = Path::connect(proxy.address(), test::insecure(), impatient(), {"leiden"});
  Path there = std::move(listener.accept().path);
  const Ends ends = ends_after(here, there, [&] {
    proxy.stall(silent);
    proxy.refuse(!silent);
    if (!silent) proxy.cut();
  });
  EXPECT_LT(std::abs(seconds(ends.here.at - ends.there.at)), 1) << ends.here.message << "\n" << ends.there.message;
  EXPECT_GT(ends.seconds, 0.5);
  EXPECT_LT(ends.seconds, 10);
  for (const End& end : {ends.here, ends.there}) {
    EXPECT_TRUE(test::says(end.message, "patience"));
    EXPECT_TRUE(test::says(end.message, "bytes"));
    EXPECT_GE(end.down, 2) << end.message;
    EXPECT_LT(end.down, 10) << end.message;
  }
  EXPECT_GT(ends.here.outstanding, 0u);
  EXPECT_TRUE(test::says(ends.here.message, proxy.address().text()));
  EXPECT_TRUE(test::says(ends.there.message, "leiden at 127.0.0.1"));
  EXPECT_THROW(here.send(1, {}), PathError);  // and it stays so
  EXPECT_FALSE(here.status().up);
  EXPECT_FALSE(there.status().up);
}

// The program at the other end was started anew: it knows nothing of the path.
TEST_F(Lost, APeerThatRestartedIsToldAtOnce) {
  Listener listener({"127.0.0.1", 0}, test::insecure(), impatient()),
      anew({"127.0.0.1", 0}, test::insecure(), impatient());
  test::Proxy proxy(listener.address());
  Path here = Path::connect(proxy.address(), test::insecure(), impatient(), {"here"});
  Path there = std::move(listener.accept().path);
  const Ends ends = ends_after(here, there, [&] {
    proxy.lead_to(anew.address());
    proxy.cut();
  });
  EXPECT_TRUE(test::says(ends.here.message, "started anew"));
  EXPECT_GT(ends.here.outstanding, 0u);
  EXPECT_TRUE(test::says(ends.there.message, "patience"));
  // A path of its own is welcome.
  Path again = Path::connect(proxy.address(), test::insecure(), impatient(), {"here"});
  Path taken = std::move(anew.accept().path);
  again.send(1, test::pattern(100, 1));
  EXPECT_EQ(taken.receive_any(1, 100).size, 100u);
}

TEST_F(Lost, AListenerThatWentAwayTakesNoStreamBack) {
  PathSettings settings = impatient();
  settings.stream_timeout = 30;  // streams end only where the test breaks them
  auto listener = std::make_unique<Listener>(Endpoint{"127.0.0.1", 0}, test::insecure(), settings);
  const Endpoint address = listener->address();
  Path here = Path::connect(address, test::insecure(), settings, {"here"});
  Path there = std::move(listener->accept().path);
  EXPECT_TRUE(test::comes_true([&] { return there.status().streams_up == 3; }));
  listener.reset();
  here.drop_stream(0);
  here.drop_stream(1);
  const auto message = test::pattern(3000000, 1);  // goes over the one that is left
  Request send = here.start_send(1, message);
  EXPECT_EQ(there.receive_any(1, message.size()).size, message.size());
  send.wait();
  const Ends ends = ends_after(here, there, [&] { here.drop_stream(2); });
  EXPECT_TRUE(test::says(ends.here.message, "refused"));  // by the system: nobody listens
  EXPECT_TRUE(test::says(ends.here.message, address.text()));
  EXPECT_LT(std::abs(seconds(ends.here.at - ends.there.at)), 1) << ends.here.message << "\n" << ends.there.message;
}

TEST_F(Lost, ClosedByThePeerIsNoLoss) {
  test::Pair pair(impatient());
  std::vector<std::byte> buffer(10);
  auto waiting = std::async(std::launch::async, [&] { return end_of([&] { pair.there.receive(1, buffer); }); });
  EXPECT_TRUE(pair.here.close(5));
  const End end = waiting.get();
  EXPECT_TRUE(test::says(end.message, "close"));
  EXPECT_FALSE(test::says(end.message, "patience")) << end.message;
}

TEST_F(Lost, NobodyThereIsToldAfterThePatience) {
  Endpoint nobody;
  nobody = Listener({"127.0.0.1", 0}, test::insecure(), impatient()).address();
  PathSettings settings = impatient();
  settings.patience = 0.5;
  const auto begin = Clock::now();
  const End end = end_of([&] { Path::connect(nobody, test::insecure(), settings); });
  EXPECT_GT(seconds(end.at - begin), 0.4);
  EXPECT_LT(seconds(end.at - begin), 10);
  EXPECT_TRUE(test::says(end.message, nobody.text()));
  EXPECT_TRUE(test::says(end.message, "refused"));
}

TEST_F(Lost, WaitsForAListenerThatComesLate) {
  Endpoint address = Listener({"127.0.0.1", 0}, test::insecure(), impatient()).address();
  PathSettings settings = impatient();
  settings.patience = 20;
  auto connecting = std::async(std::launch::async, [&] { return Path::connect(address, test::insecure(), settings); });
  test::pause(0.3);
  Listener listener(address, test::insecure(), impatient());
  Accepted accepted = listener.accept();
  EXPECT_TRUE(connecting.get().status().up);
}

}  // namespace
}  // namespace maki::wan
