// Copies over real paths on loopback.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"

namespace maki::wan::copy {
namespace {

using test::comes_true;

class CopyPath : public ::testing::Test {
 protected:
  CopyPath() {
    fs::create_directories(here_ / "served");
    fs::create_directories(here_ / "local");
  }
  RunningServer serve(std::uint16_t port = 0) const {
    return RunningServer(sharing(here_ / "served"), security_, test::streams(4), port);
  }
  test::TemporaryFolder keys_;
  Security security_ = test::new_key(keys_);
  Scratch here_;
};

TEST_F(CopyPath, ThereAndBack) {
  make_tree(here_ / "local/tree", 150);
  write_file(here_ / "local/tree/large", random_text(12 << 20, 5));
  const RunningServer service = serve();
  Client client(service.path());
  EXPECT_TRUE(client.push({(here_ / "local/tree").string()}, "").complete());
  EXPECT_EQ(difference(here_ / "local/tree", here_ / "served/tree"), "");
  EXPECT_TRUE(client.pull({"tree"}, (here_ / "back").string()).complete());
  EXPECT_EQ(difference(here_ / "local/tree", here_ / "back/tree"), "");
  EXPECT_EQ(client.push({(here_ / "local/tree").string()}, "").counts.bytes, 0u);
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
  EXPECT_FALSE(fs::exists(got));
  EXPECT_FALSE(fs::exists(here_ / "x"));
  EXPECT_TRUE(client.push({local}, "/ok").complete());
  EXPECT_EQ(read_file(here_ / "served/ok"), "A");
}

TEST_F(CopyPath, StreamsThatDieCostNothing) {
  write_file(here_ / "local/large", random_text(32 << 20, 6));
  const RunningServer service = serve();
  auto channel = std::make_unique<PathChannel>(service.path());
  Path& path = channel->path();
  Client client(std::move(channel));
  std::atomic<bool> done{false};
  std::thread breaking([&] {
    for (int i = 0; !done; ++i) {
      path.drop_stream(i % 4);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  const CopyReport report = client.push({(here_ / "local/large").string()}, "");
  done = true;
  breaking.join();
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(difference(here_ / "local", here_ / "served"), "");
}

TEST_F(CopyPath, AServerThatStopsAndComesBack) {
  write_file(here_ / "local/large", random_text(48 << 20, 7));
  const std::string local = (here_ / "local/large").string();
  std::optional<RunningServer> service;
  service.emplace(sharing(here_ / "served"), security_);
  const std::uint16_t port = service->address().port;
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
  const CopyReport report = client.push({local}, "");
  if (interrupted) {
    EXPECT_LE(report.counts.bytes, 41u << 20);
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

  // One that watches the folder while it lives.
  class RunningSync {
   public:
    explicit RunningSync(SyncOptions options) {
      options.stop = [this] { return stop_.load(); };
      sync_.emplace(options);
      thread_ = std::thread([this] { EXPECT_NO_THROW(sync_->run()); });
    }
    ~RunningSync() {
      stop_ = true;
      thread_.join();
    }

   private:
    std::atomic<bool> stop_{false};
    std::optional<Sync> sync_;
    std::thread thread_;
  };
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

TEST_F(CopySync, ShipsFilesAsTheyAreClosedOrMovedIn) {
  const RunningServer service = serve();
  const RunningSync sync(options(service));
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

TEST_F(CopySync, GoesOnAfterTheServerWasAway) {
  std::optional<RunningServer> service;
  service.emplace(sharing(here_ / "served"), security_);
  const Endpoint where = service->address();
  SyncOptions watching = options(*service);
  PathSettings settings = test::streams(2);
  settings.patience = 2;
  watching.connect = [&] { return Path::connect(where, security_, settings, {"test"}); };
  const RunningSync sync(watching);
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
    const RunningSync sync(watching);
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

}  // namespace
}  // namespace maki::wan::copy
