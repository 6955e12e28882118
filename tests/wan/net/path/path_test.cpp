// Messages over a path, both ends in this process; and how a path ends when nothing helps: on both sides, at its time,
// with a message that says what happened.
#include <gtest/gtest.h>

#include <thread>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/proxy.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/error.hpp"
#include "wan/net/socket/event_loop.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::expect_contains, test::pattern, test::same, test::says;

// Streams, and with TLS or not.
class PathOf : public testing::TestWithParam<std::pair<int, bool>> {
 protected:
  test::TemporaryFolder folder_;
  test::Pair pair_{test::streams(GetParam().first), GetParam().second ? test::new_key(folder_) : test::insecure()};
};

INSTANTIATE_TEST_SUITE_P(
    Streams, PathOf, testing::Values(std::pair{1, false}, std::pair{1, true}, std::pair{4, false}, std::pair{16, true}),
    [](const auto& info) { return std::to_string(info.param.first) + (info.param.second ? "Encrypted" : "Plain"); });

// One message, asked for before it is sent; when it had come.
std::chrono::steady_clock::time_point carry(test::Pair& pair, std::size_t size) {
  const auto sent = pattern(size, 1);
  std::vector<std::byte> got(size);
  Request receive = pair.there.start_receive(7, got);
  pair.here.send(7, sent);
  receive.wait();
  EXPECT_EQ(receive.size(), size);
  EXPECT_TRUE(got == sent) << size;
  return receive.done_at();
}

TEST_P(PathOf, CarriesMessagesOfAllSizes) {
  for (const std::size_t size :
       {0u, 1u, 8u, 4095u, 4096u, 4097u, 16383u, 16384u, 65535u, 65536u, 65537u, 1000000u, 20000001u})
    carry(pair_, size);
}

TEST_P(PathOf, ReceivesWhatCameBeforeItWasAskedForAndOfUnknownSize) {
  const auto sent = pattern(5000000, 3);
  Request send = pair_.here.start_send(1, sent);
  pair_.here.send(2, pattern(100, 4));
  EXPECT_TRUE(same(pair_.there.receive_any(2, 1000).view(), pattern(100, 4)));  // overtakes
  send.wait();
  EXPECT_TRUE(same(pair_.there.receive_any(1, sent.size()).view(), sent));
}

TEST_P(PathOf, ManySmallOnesBackAndForth) {
  std::thread other([&] {
    std::uint64_t number = 0;
    for (int i = 0; i < 500; ++i) {
      pair_.there.receive(1, std::as_writable_bytes(std::span(&number, 1)));
      ++number;
      pair_.there.send(1, std::as_bytes(std::span(&number, 1)));
    }
  });
  std::uint64_t number = 0;
  for (int i = 0; i < 500; ++i) {
    pair_.here.send(1, std::as_bytes(std::span(&number, 1)));
    pair_.here.receive(1, std::as_writable_bytes(std::span(&number, 1)));
  }
  other.join();
  EXPECT_EQ(number, 500u);
}

TEST(Path, MessagesBeyondTheMemoryForUnmatchedDataWaitForTheirReceive) {
  PathSettings settings = test::streams(4);
  settings.unmatched_limit = 1 << 20;
  test::Pair pair(settings);
  const auto sent = pattern(30000000, 3);
  Request send = pair.here.start_send(1, sent);
  EXPECT_TRUE(comes_true([&] { return pair.there.status().received > 1'000'000; }));  // the account is used up
  pair.here.send(2, pattern(100, 4));
  Request other = pair.there.start_receive_any(2, 1000);
  EXPECT_FALSE(other.wait_for(0.2));
  EXPECT_FALSE(send.test());
  std::vector<std::byte> got(sent.size());
  EXPECT_EQ(pair.there.receive(1, got), sent.size());
  EXPECT_TRUE(got == sent);
  send.wait();
  other.wait();
}

// More than the copies that are done at once, while messages that nobody receives keep the path from ever being idle.
TEST(Path, SmallMessagesAreCopiedHoweverManyWait) {
  PathSettings settings = test::streams(2);
  settings.unmatched_limit = 1 << 20;
  test::Pair pair(settings);
  const auto large = pattern(30000000, 3);
  Request first = pair.here.start_send(1, large);
  std::vector<std::byte> buffer(64 << 10);
  Request last;
  constexpr int kCount = 1100;
  for (int n = 0; n < kCount; ++n) {
    std::ranges::fill(buffer, static_cast<std::byte>(n));
    last = pair.here.start_send(2, buffer);
  }
  std::ranges::fill(buffer, std::byte{255});
  EXPECT_FALSE(last.test());  // who waits for it is held up
  Request second = pair.here.start_send(1, large);
  EXPECT_TRUE(same(pair.there.receive_any(1, large.size()).view(), large));
  for (int n = 0; n < kCount; ++n) {
    const Bytes got = pair.there.receive_any(2, buffer.size());
    EXPECT_EQ(std::ranges::count(got.view(), static_cast<std::byte>(n)), std::ssize(buffer)) << n;
  }
  last.wait();
  EXPECT_TRUE(pair.here.start_send(3, buffer).test());  // what is acknowledged counts no longer
  EXPECT_FALSE(second.test());
  EXPECT_TRUE(same(pair.there.receive_any(1, large.size()).view(), large));
}

TEST(Path, AMessageThatDoesNotFitFailsThatReceiveOnly) {
  test::Pair pair(test::streams(2));
  std::vector<std::byte> small(1000);
  for (const std::size_t size : {2'000'000, 2000}) {
    Request receive = pair.there.start_receive(1, small);
    pair.here.send(1, pattern(size, 1));
    EXPECT_THROW(receive.wait(), Error);
  }
  pair.here.send(1, pattern(900, 2));
  EXPECT_EQ(pair.there.receive(1, small), 900u);
}

TEST(Path, ClosingDeliversWhatWasSent) {
  test::Pair pair(test::streams(4));
  const auto sent = pattern(10000000, 1);
  Request send = pair.here.start_send(1, sent), waiting = pair.there.start_receive_any(2, 10);
  EXPECT_TRUE(pair.here.close(60));
  send.wait();
  EXPECT_TRUE(says(test::error_of<PathError>([&] { waiting.wait(); }), "was closed by here"));
  EXPECT_TRUE(same(pair.there.receive_any(1, sent.size()).view(), sent));
  EXPECT_THROW(pair.there.receive_any(1, 10), PathError);
  EXPECT_THROW(pair.there.send(1, sent), PathError);
}

TEST(Path, PacingHoldsTheRate) {
  PathSettings settings = test::streams(4);
  settings.pacing_rate = 20e6;
  test::Pair pair(settings);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(std::chrono::duration<double>(carry(pair, 5000000) - start).count(), 0.2);
}

TEST(Path, ManyStreams) {
  test::TemporaryFolder folder;
  test::Pair pair(test::streams(256), test::new_key(folder));
  EXPECT_TRUE(comes_true([&] { return pair.here.status().streams_up == 256; }));
  carry(pair, 40000000);
}

using Clock = std::chrono::steady_clock;

PathSettings impatient() {
  PathSettings settings = test::streams(3);
  settings.heartbeat = 0.1;
  settings.stream_timeout = 1;
  settings.patience = 4;
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
  const auto message = pattern(4000000, 1);
  std::vector<std::byte> buffer(1000);
  auto one = std::async(std::launch::async, [&] { return end_of([&] { here.send(1, message); }); });
  auto other = std::async(std::launch::async, [&] { return end_of([&] { there.receive(2, buffer); }); });
  Request unread = there.start_send(3, message);
  EXPECT_TRUE(comes_true([&] { return here.status().outstanding > 0 && there.status().outstanding > 0; }));
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
  test::Linked link(impatient());
  const Ends ends = ends_after(link.here, link.there, [&] {
    link.proxy.stall(silent);
    link.proxy.refuse(!silent);
    if (!silent) link.proxy.cut();
  });
  EXPECT_GT(ends.seconds, 0.5);
  EXPECT_LT(ends.seconds, 40);
  for (const End& end : {ends.here, ends.there}) {
    expect_contains(end.message, {"patience", "bytes"});
    EXPECT_GE(end.down, impatient().patience) << end.message;
    EXPECT_LT(end.down, 40) << end.message;
  }
  EXPECT_GT(ends.here.outstanding, 0u);
  EXPECT_TRUE(says(ends.here.message, link.proxy.address().text()));
  EXPECT_TRUE(says(ends.there.message, "here at 127.0.0.1"));
  EXPECT_THROW(link.here.send(1, {}), PathError);  // and it stays so
  EXPECT_FALSE(link.here.status().up);
  EXPECT_FALSE(link.there.status().up);
}

// The program at the other end was started anew: it knows nothing of the path.
TEST_F(Lost, APeerThatRestartedIsToldAtOnce) {
  test::Linked link(impatient());
  Listener anew({"127.0.0.1", 0}, test::insecure(), impatient());
  const Ends ends = ends_after(link.here, link.there, [&] {
    link.proxy.lead_to(anew.address());
    link.proxy.cut();
  });
  EXPECT_TRUE(says(ends.here.message, "started anew"));
  EXPECT_GT(ends.here.outstanding, 0u);
  EXPECT_TRUE(says(ends.there.message, "patience"));
  // A path of its own is welcome.
  Path again = Path::connect(link.proxy.address(), test::insecure(), impatient(), {"here"});
  Path taken = std::move(anew.accept().path);
  again.send(1, pattern(100, 1));
  EXPECT_EQ(taken.receive_any(1, 100).size, 100u);
}

TEST_F(Lost, AListenerThatWentAwayTakesNoStreamBack) {
  PathSettings settings = impatient();
  settings.stream_timeout = 30;  // streams end only where the test breaks them
  auto listener = std::make_unique<Listener>(Endpoint{"127.0.0.1", 0}, test::insecure(), settings);
  const Endpoint address = listener->address();
  Path here = Path::connect(address, test::insecure(), settings, {"here"});
  Path there = std::move(listener->accept().path);
  EXPECT_TRUE(comes_true([&] { return there.status().streams_up == 3; }));
  listener.reset();
  here.drop_stream(0);
  here.drop_stream(1);
  const auto message = pattern(3000000, 1);  // goes over the one that is left
  Request send = here.start_send(1, message);
  EXPECT_EQ(there.receive_any(1, message.size()).size, message.size());
  send.wait();
  const Ends ends = ends_after(here, there, [&] { here.drop_stream(2); });
  expect_contains(ends.here.message, {"refused", address.text()});  // by the system: nobody listens
}

TEST_F(Lost, NobodyThereIsToldAfterThePatience) {
  const Endpoint nobody{"127.0.0.1", test::free_ports(1)[0]};
  PathSettings settings = impatient();
  settings.patience = 2.5;
  const auto begin = Clock::now();
  const End end = end_of([&] { Path::connect(nobody, test::insecure(), settings); });
  EXPECT_GT(seconds(end.at - begin), 2.4);
  EXPECT_LT(seconds(end.at - begin), 40);
  expect_contains(end.message, {nobody.text(), "refused"});
}

TEST_F(Lost, WaitsForAListenerThatComesLate) {
  const Endpoint address{"127.0.0.1", test::free_ports(1)[0]};
  PathSettings settings = impatient();
  settings.patience = 60;
  auto connecting = std::async(std::launch::async, [&] { return Path::connect(address, test::insecure(), settings); });
  test::pause(0.3);
  Listener listener(address, test::insecure(), impatient());
  Accepted accepted = listener.accept();
  EXPECT_TRUE(connecting.get().status().up);
}

// Both programs were suspended for longer than they are patient.
TEST_F(Lost, ThoseWhoSleptBlameNobody) {
  Context context(1);
  PathSettings settings = impatient();
  settings.patience = 2;
  test::Pair pair(settings, test::insecure(), context);
  pair.here.send(1, pattern(100, 1));
  pair.there.receive_any(1, 100);
  context.next_loop().post([] { test::pause(4); });
  test::pause(5);
  pair.there.send(2, pattern(100, 2));
  EXPECT_EQ(pair.here.receive_any(2, 100).size, 100u);
}

TEST_F(Lost, EachLongBreakIsLoggedWithItsEnd) {
  PathSettings settings = impatient();
  settings.patience = 60;
  settings.stream_timeout = 30;  // streams end only where the test breaks them
  test::Linked link(settings);
  const auto count = [&](const char* words) {
    const auto lines = log_.all();
    return std::ranges::count_if(lines, [&](const std::string& line) { return says(line, words); });
  };
  for (int breaks = 1; breaks <= 2; ++breaks) {
    link.proxy.refuse(true);
    link.proxy.cut();
    EXPECT_TRUE(comes_true([&] { return count("is down") == 2 * breaks; }));
    test::pause(2.5);
    link.proxy.refuse(false);
    EXPECT_TRUE(comes_true([&] { return count("is up again, after") == 2 * breaks; }));  // both sides
    EXPECT_EQ(count("is down"), 2 * breaks);
  }
}

// It owes the peer an acknowledgement perhaps, and a goodbye.
TEST(Path, OneThatIsDownComesUpAgainToClose) {
  PathSettings settings = impatient();
  settings.patience = 60;
  test::Linked pair(settings);
  pair.there.send(1, pattern(1000, 1));
  pair.here.receive_any(1, 1000);
  test::pause(0.3);  // all is acknowledged both ways
  pair.proxy.refuse(true);
  pair.proxy.cut();
  EXPECT_TRUE(comes_true([&] { return !pair.here.status().up; }));
  auto closing = std::async(std::launch::async, [&] { return pair.here.close(40); });
  EXPECT_EQ(closing.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  pair.proxy.refuse(false);
  EXPECT_TRUE(closing.get());
  EXPECT_TRUE(says(end_of([&] { pair.there.receive_any(1, 10); }).message, "was closed by here"));
}

TEST(Path, ANameThatCannotBeIsAnErrorAtOnce) {
  for (const std::string& name : {std::string(64, 'x'), std::string("a\nb")})
    EXPECT_TRUE(says(test::error_of([&] {
                       Path::connect({"127.0.0.1", 1}, test::insecure(), test::streams(1), {name});
                     }),
                     "cannot call 127.0.0.1:1 by this name"));
}

}  // namespace
}  // namespace maki::wan
