// Copies over real paths on loopback; who may have what of a server, and how much of it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/copy/sync.hpp"

namespace maki::wan::copy {
namespace {

using test::comes_true;

class CopyPath : public ::testing::Test {
 protected:
  CopyPath() {
    for (const char* name : {"served", "local"}) fs::create_directories(here_ / name);
  }
  RunningServer serve() const { return RunningServer(sharing(here_ / "served"), security_); }
  test::TemporaryFolder keys_;
  Security security_ = test::new_key(keys_);
  Scratch here_;
};

TEST_F(CopyPath, ThereAndBack) {
  make_tree(here_ / "local/tree", 150);
  write_file(here_ / "local/tree/large", random_text(12 << 20, 5));
  const RunningServer service = serve();
  Client client(service.path());
  const Counts there = client.push({(here_ / "local/tree").string()}, "deep/er");
  EXPECT_TRUE(there.complete());
  EXPECT_EQ(there.files, 152u);
  EXPECT_EQ(difference(here_ / "local/tree", here_ / "served/deep/er/tree"), "");
  EXPECT_EQ(parts_below(here_ / "served"), 0);
  const Counts back = client.pull({"/deep/er/tree"}, (here_ / "back").string());
  EXPECT_TRUE(back.complete());
  EXPECT_EQ(back.files, 152u);
  EXPECT_EQ(difference(here_ / "local/tree", here_ / "back/tree"), "");
  const Counts again = client.push({(here_ / "local/tree").string()}, "deep/er");
  EXPECT_EQ(again.files + again.bytes, 0u);
  EXPECT_EQ(again.skipped, 152u);
}

// Nanoseconds since 1970 have 63 bits.
TEST_F(CopyPath, LaterTimesThanMessagesHoldBecomeTheLatest) {
  write_file(here_ / "local/a", "A");
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 13569465600, .tv_nsec = 0}};  // 2400
  ASSERT_EQ(utimensat(AT_FDCWD, (here_ / "local/a").c_str(), times, 0), 0);
  const RunningServer service = serve();
  Client client(service.path());
  EXPECT_EQ(client.push({(here_ / "local/a").string()}, "").files, 1u);
  struct stat status;
  ASSERT_EQ(stat((here_ / "served/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 9223372035);
  EXPECT_EQ(client.push({(here_ / "local/a").string()}, "").skipped, 1u);
}

TEST_F(CopyPath, RefusalsLeaveTheConnectionUsable) {
  write_file(here_ / "local/a", "A");
  write_file(here_ / "outside", "secret");
  fs::create_symlink("..", here_ / "served/up");
  const RunningServer service = serve();
  Client client(service.path());
  const std::string local = (here_ / "local/a").string(), got = (here_ / "got").string();
  for (const char* bad : {"../x", "/../x", "x/../../y", "up/x", "up/"})
    EXPECT_THROW(client.push({local}, bad), Error) << bad;
  for (const char* bad : {"../outside", "/../outside", "up/outside", "up", "up/", "none"})
    EXPECT_THROW(client.pull({bad}, got), Error) << bad;
  write_file(here_ / "served/file", "f");
  fs::create_symlink("file", here_ / "served/link");
  EXPECT_TRUE(
      test::says(test::error_of([&] { client.pull({"link"}, got); }), "cannot follow the symbolic link 'link'"));
  EXPECT_FALSE(fs::exists(got));
  EXPECT_FALSE(fs::exists(here_ / "x"));
  EXPECT_TRUE(client.push({local}, "/ok").complete());
  EXPECT_EQ(read_file(here_ / "served/ok"), "A");
}

TEST_F(CopyPath, AServerThatStopsAndComesBack) {
  write_file(here_ / "local/large", random_text(48 << 20, 7));
  const std::string local = (here_ / "local/large").string();
  const std::uint16_t port = test::free_ports(1)[0];
  std::optional<RunningServer> service;
  service.emplace(sharing(here_ / "served"), security_, test::streams(4), port);
  bool interrupted = false;  // on a busy machine the copy may be through first
  {
    Client client(service->path());
    std::thread stopping([&] {
      std::error_code none;
      while (fs::file_size(here_ / "served/.large.maki-part", none) + 1 < (8 << 20) &&
             !fs::exists(here_ / "served/large"))
        std::this_thread::yield();
      service->stop();
    });
    try {
      client.push({local}, "");
    } catch (const Error&) {
      interrupted = true;
    }
    stopping.join();
  }
  service.reset();
  service.emplace(sharing(here_ / "served"), security_, test::streams(4), port);
  Client client(service->path());
  const Counts report = client.push({local}, "");
  if (interrupted) {
    EXPECT_LE(report.bytes, 41u << 20);
  }
  EXPECT_EQ(difference(here_ / "local", here_ / "served"), "");
}

class CopySync : public CopyPath {
 protected:
  SyncOptions options(const RunningServer& service) {
    SyncOptions options;
    options.folder = (here_ / "local").string();
    options.destination = "in";
    options.settle = 0.2;
    options.connect = [&] { return service.path(); };
    return options;
  }
  bool comes(const std::string& name) const {
    return comes_true([&] { return fs::exists(here_ / "served/in" / name); });
  }

  // Watches the folder while it lives.
  static std::jthread watch(SyncOptions options) {
    return std::jthread([options = std::move(options)](const std::stop_token& stop) mutable {
      options.stop = [stop] { return stop.stop_requested(); };
      EXPECT_NO_THROW(Sync(options).run());
    });
  }
};

TEST_F(CopySync, OnceShipsWhatIsThere) {
  make_tree(here_ / "local", 30);
  write_file(here_ / "local/.hidden", "no");
  write_file(here_ / "local/.git/x", "no");
  write_file(here_ / "local/a.tmp", "no");
  write_file(here_ / "local/b.part", "no");
  const RunningServer service = serve();
  SyncOptions once = options(service);
  once.once = true;
  EXPECT_EQ(Sync(once).run().files, 31u);
  EXPECT_EQ(read_file(here_ / "served/in/d1/e1/file 1.dat"), read_file(here_ / "local/d1/e1/file 1.dat"));
  for (const char* name : {".hidden", ".git", "a.tmp", "b.part"})
    EXPECT_FALSE(fs::exists(here_ / "served/in" / name)) << name;
  EXPECT_EQ(Sync(once).run().files, 0u);
}

// No event tells of a file that was opened before the folder was watched.
TEST_F(CopySync, AFileThatIsOpenFromBeforeIsNotComplete) {
  if (!knows_writers((here_ / "local").string())) GTEST_SKIP() << "the folder of the tests has no leases";
  std::ofstream open(here_ / "local/open");
  open << "half" << std::flush;
  write_file(here_ / "local/whole", "x");
  test::pause(0.5);  // longer than options().settle
  const RunningServer service = serve();
  SyncOptions once = options(service);
  once.once = true;
  std::string said;
  once.log = [&](const std::string& line) { said += line + "\n"; };
  const Counts counts = Sync(once).run();
  EXPECT_EQ(counts.files, 1u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_TRUE(test::says(said, "still being written, and left out: open")) << said;
  EXPECT_FALSE(fs::exists(here_ / "served/in/open"));
  const std::jthread sync = watch(options(service));
  test::pause(0.6);
  EXPECT_FALSE(fs::exists(here_ / "served/in/open"));
  open.close();
  EXPECT_TRUE(comes("open"));
}

TEST_F(CopySync, ManyCompleteFilesComeInBatches) {
  const std::size_t many = 2 * kMostReady + 5;
  for (std::size_t i = 0; i < many; ++i) std::ofstream(here_ / "local" / std::to_string(i));
  Watch watch((here_ / "local").string(), 0);
  watch.scan();
  std::size_t taken = 0;
  for (const std::size_t expected : {kMostReady, kMostReady, std::size_t{5}}) {
    const auto ready = watch.ready(1);
    EXPECT_EQ(ready.size(), expected);
    taken += ready.size();
  }
  EXPECT_EQ(taken, many);
  EXPECT_EQ(watch.waiting(), 0u);
}

TEST_F(CopySync, ShipsFilesAsTheyAreClosedOrMovedIn) {
  const RunningServer service = serve();
  const std::jthread sync = watch(options(service));
  const fs::path local = here_ / "local", there = here_ / "served/in";
  write_file(local / "first", "1");
  EXPECT_TRUE(comes("first"));
  write_file(local / "new/folder/second", "2");
  EXPECT_TRUE(comes("new/folder/second"));
  write_file(local / "third.tmp", "3");
  fs::rename(local / "third.tmp", local / "new/third");
  EXPECT_TRUE(comes("new/third"));
  write_file(local / "first", "changed");
  EXPECT_TRUE(comes_true([&] { return read_file(there / "first") == "changed"; }));
  // One that stays open is not complete, however long it is left alone.
  std::FILE* open = std::fopen((local / "open").c_str(), "w");
  std::fputs("half", open);
  std::fflush(open);
  write_file(local / "after", "x");
  EXPECT_TRUE(comes("after"));
  test::pause(0.6);
  EXPECT_FALSE(fs::exists(there / "open"));
  std::fclose(open);
  EXPECT_TRUE(comes("open"));
  EXPECT_FALSE(fs::exists(there / "third.tmp"));
}

// The kernel drops events where nobody reads them: files that were being written then are complete once they have
// settled.
TEST_F(CopySync, FilesThatAreWrittenWhileEventsAreLostAreNotComplete) {
  Watch watch((here_ / "local").string(), 0.5);
  watch.scan();
  std::array<std::ofstream, 2> files{std::ofstream(here_ / "local/a"), std::ofstream(here_ / "local/b")};
  EXPECT_TRUE(watch.ready(0.1).empty());
  for (int i = 0; i < 40000; ++i) files[i % 2] << 'x' << std::flush;  // equal events in a row would become one
  EXPECT_TRUE(watch.ready(0.1).empty());
  for (std::ofstream& file : files) file.close();
  std::set<std::string> complete;
  EXPECT_TRUE(comes_true([&] {
    for (const std::string& path : watch.ready(0.1)) complete.insert(path);
    return complete.size() == 2;
  }));
}

// truncate(2) changes a file without an event of closing: a scan finds it. One that is still open for writing is not
// complete, however long nothing is written.
TEST_F(CopySync, ATruncatedFileIsCompleteAndAnOpenOneIsNot) {
  Watch watch((here_ / "local").string(), 0.1);
  watch.scan();
  write_file(here_ / "local/cut", "0123456789");
  EXPECT_TRUE(comes_true([&] { return watch.ready(0.1) == std::vector<std::string>{"cut"}; }));
  fs::resize_file(here_ / "local/cut", 3);
  std::ofstream open(here_ / "local/open");
  open << "some" << std::flush;
  EXPECT_TRUE(watch.ready(0.3).empty());
  watch.scan();
  EXPECT_TRUE(comes_true([&] { return watch.ready(0.1) == std::vector<std::string>{"cut"}; }));
  watch.scan();  // finds the one that is not marked as handled again
  for (const std::string& path : watch.ready(0.3)) EXPECT_EQ(path, "cut");
  open.close();
  EXPECT_TRUE(comes_true([&] { return watch.ready(0.1) == std::vector<std::string>{"open"}; }));
}

TEST_F(CopySync, AFolderThatIsReplacedIsToldOf) {
  Watch watch((here_ / "local").string(), 0.5);
  fs::remove_all(here_ / "local");
  EXPECT_THROW(watch.scan(), Error);
  fs::create_directories(here_ / "local");
  EXPECT_THROW(watch.scan(), Error);
}

TEST_F(CopySync, GoesOnAfterTheServerWasAway) {
  std::optional<RunningServer> service;
  service.emplace(sharing(here_ / "served"), security_, test::streams(4), test::free_ports(1)[0]);
  const Endpoint where = service->address();
  SyncOptions watching = options(*service);
  PathSettings settings = test::streams(2);
  settings.patience = 2;
  watching.connect = [&] { return Path::connect(where, security_, settings, {"test"}); };
  const std::jthread sync = watch(watching);
  write_file(here_ / "local/a", "A");
  EXPECT_TRUE(comes("a"));
  service.reset();
  write_file(here_ / "local/b", "B");
  test::pause(0.5);
  service.emplace(sharing(here_ / "served"), security_, test::streams(4), where.port);
  EXPECT_TRUE(comes("b"));
}

TEST_F(CopySync, GoesOnAfterANameHadNoAddress) {
  const RunningServer service = serve();
  SyncOptions watching = options(service);
  std::atomic<int> calls{0};
  watching.connect = [&] {
    // The second and third time the name server is away, as the network is; the path of the first is lost.
    const int call = ++calls;
    if (call == 2 || call == 3) throw Error("cannot find the address of 'there'", "try again later");
    auto path = service.path();
    if (call == 1) path.close(0);
    return path;
  };
  {
    const std::jthread sync = watch(watching);
    write_file(here_ / "local/a", "A");
    EXPECT_TRUE(comes("a"));
  }
  EXPECT_EQ(calls, 4);
}

TEST_F(CopySync, ANameWithoutAddressAtFirstIsAnError) {
  const RunningServer service = serve();
  write_file(here_ / "local/a", "A");
  SyncOptions watching = options(service);
  watching.connect = [&]() -> Path { return Path::connect({"no-such-host.invalid", 1}, security_, test::streams(1)); };
  EXPECT_TRUE(test::says(test::error_of([&] { Sync(watching).run(); }), "no-such-host.invalid"));
}

TEST_F(CopySync, AKeyThatTheServerDoesNotKnowIsAnErrorAtFirst) {
  const RunningServer service = serve();
  write_file(here_ / "local/a", "A");
  int calls = 0;
  SyncOptions watching = options(service);
  watching.stop = [&] { return calls > 1; };
  watching.connect = [&, other = test::new_key(keys_, "other")] {
    ++calls;
    return Path::connect(service.address(), other, test::streams(1));
  };
  EXPECT_TRUE(test::says(test::error_of([&] { Sync(watching).run(); }), "does not know our key"));
}

class CopyServer : public ::testing::Test {
 protected:
  CopyServer() {
    for (const char* name : {"a", "b", "c"}) {
      fs::create_directories(here_ / name);
      security_.key_files.push_back(test::new_key(keys_, name).key_files[0]);
    }
    options_.shares[id_of("a")] = {here_ / "a", false, "key a.key"};
    options_.shares[id_of("b")] = {here_ / "b", true, "key b.key"};
    options_.log = [this](const std::string& line) { log_.add(line); };
    write_file(here_ / "local", "contents");
  }
  std::string id_of(const char* name) const { return read_key(keys_ / name).id; }
  void start() { server_.emplace(options_, security_, test::streams(2)); }
  void start_writable() {
    options_.shares[id_of("b")].read_only = false;
    start();
  }
  Path path(const char* key) const {
    return Path::connect(server_->address(), {.key_files = {keys_ / key}}, test::streams(2),
                         {std::string("from ") + key});
  }
  void push(const char* key, const std::string& to) const {
    Client client(path(key));
    EXPECT_TRUE(client.push({(here_ / "local").string()}, to).complete());
  }
  // A client that begins a copy and says no more.
  void begin(const char* key) {
    auto& channel = held_.emplace_back(std::make_unique<MessageChannel>(path(key)));
    channel->send(kControlTag, encode(Order{.action = Order::Action::kPush, .destination = "", .sources = {}}));
    EXPECT_EQ(decode_reply(channel->receive(kControlTag).view()).word, Reply::Word::kAgreed);
  }

  test::TemporaryFolder keys_;
  Security security_;
  Scratch here_;
  ServerOptions options_;
  test::Lines log_;
  std::optional<RunningServer> server_;
  std::vector<std::unique_ptr<MessageChannel>> held_;
};

TEST_F(CopyServer, EachKeyHasItsOwnFolder) {
  start();
  push("a", "x/new");
  EXPECT_EQ(read_file(here_ / "a/x/new"), "contents");
  write_file(here_ / "b/only", "B");
  Client reader(path("b"));
  EXPECT_THROW(reader.push({(here_ / "local").string()}, "new"), Error);
  EXPECT_THROW(reader.pull({"x/new"}, here_ / "got/"), Error);  // of a's folder
  EXPECT_TRUE(reader.pull({"only"}, here_ / "got/").complete());
  EXPECT_EQ(read_file(here_ / "got/only"), "B");
  EXPECT_FALSE(fs::exists(here_ / "b/new"));
  EXPECT_THROW(push("c", "new"), Error);  // may call, and has no folder
  server_.reset();                        // all sessions are over
  EXPECT_TRUE(log_.has("key a.key", "brings into 'x/new'"));
  EXPECT_TRUE(log_.has("key a.key", "1 file (8 bytes)"));
  EXPECT_TRUE(log_.has("key b.key", "fetches 'only'"));
  EXPECT_TRUE(log_.has(id_of("c"), "is refused"));
}

TEST_F(CopyServer, OneKeyDoesNotLockOutOthers) {
  options_.limits.of_each = 3;
  start_writable();
  for (int i = 0; i < 3; ++i) begin("a");
  EXPECT_THROW(push("a", "x"), PathError);  // for now: another time it may
  push("b", "x");
  held_.pop_back();
  EXPECT_TRUE(comes_true([&] { return test::error_of<PathError>([&] { push("a", "x"); }).empty(); }));
}

TEST_F(CopyServer, WhoHasFewTakesAPlaceOfWhoHasMost) {
  options_.limits.all = 4;
  start_writable();
  for (const char* key : {"a", "a", "a", "a", "b"}) begin(key);
  EXPECT_THROW(push("a", "x"), PathError);
}

TEST_F(CopyServer, StopsAtOnceWhoeverIsThere) {
  options_.limits.of_each = 15;
  start_writable();
  for (int i = 0; i < 30; ++i) begin(i % 2 ? "a" : "b");
  const auto start = WallClock::now();
  server_.reset();
  EXPECT_LT(seconds_since(start), 50);  // one after another they would take two seconds each
}

// A slow line takes minutes for what the connection has taken in a moment.
TEST(CopyMeter, WhatIsUnderWayIsNotThereYet) {
  Progress progress;
  progress.files = 1, progress.listed = true;
  progress.bytes = 100'000'000;
  std::uint64_t under_way = 80'000'000;
  Meter meter(progress, [&] { return under_way; });
  EXPECT_EQ(meter.line(), "0 of 1 files, 0 bytes of 100.0 MB (0 %), 0 bytes/s");
  progress.moved = progress.bytes_done = 80'000'000;
  EXPECT_EQ(meter.line(), "0 of 1 files, 0 bytes of 100.0 MB (0 %), 0 bytes/s");
  under_way = 70'000'000;
  const std::string line = meter.line();
  EXPECT_EQ(line.find("0 of 1 files, 10.0 MB of 100.0 MB (10 %), "), 0u) << line;
  EXPECT_NE(line.find(" left"), std::string::npos) << line;
}

TEST(CopyTurns, OrdersWaitAfterABurst) {
  Turns turns;
  double wait = 0;
  for (int i = 0; i < Turns::kBurst; ++i) wait = turns.take("a");
  EXPECT_LE(wait, 0.3);
  for (int i = 0; i < 40 * Turns::kASecond; ++i) wait = turns.take("a");
  EXPECT_GT(wait, 5);
  EXPECT_LE(turns.take("b"), 0.3);
}

}  // namespace
}  // namespace maki::wan::copy
