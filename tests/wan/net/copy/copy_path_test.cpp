// Copies over real paths on loopback.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/wan/net/copy/copy_fixture.hpp"
#include "tests/wan/net/path/pair.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/copy/sync.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {
namespace {

// A served folder on a free port.
class Service {
 public:
  Service(const fs::path& root, const Security& security, std::uint16_t port = 0)
      : security_(security), listener_({"127.0.0.1", port}, security, test::streams(4)) {
    ServerOptions options;
    options.others = Share{root.string()};
    server_ = std::make_unique<Server>(options);
    thread_ = std::thread([this] { server_->run(listener_); });
  }
  ~Service() { stop(); }
  void stop() {
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  Path path() const { return Path::connect(listener_.address(), security_, test::streams(4), {"test"}); }
  std::uint16_t port() const { return listener_.address().port; }

 private:
  Security security_;
  Listener listener_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

class CopyPath : public ::testing::Test {
 protected:
  CopyPath() {
    fs::create_directories(here_ / "served");
    fs::create_directories(here_ / "local");
  }
  test::TemporaryFolder keys_;
  Security security_ = test::new_key(keys_);
  Scratch here_;
};

TEST_F(CopyPath, ThereAndBack) {
  make_tree(here_ / "local/tree", 150);
  write_file(here_ / "local/tree/large", random_text(12 << 20, 5));
  Service service(here_ / "served", security_);
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
  Service service(here_ / "served", security_);
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
  Service service(here_ / "served", security_);
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
  auto service = std::make_unique<Service>(here_ / "served", security_);
  const std::uint16_t port = service->port();
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
  service = std::make_unique<Service>(here_ / "served", security_, port);
  Client client(service->path());
  const CopyReport report = client.push({local}, "");
  if (interrupted) {
    EXPECT_LE(report.counts.bytes, 41u << 20);
  }
  EXPECT_EQ(difference(here_ / "local", here_ / "served"), "");
}

class CopySync : public CopyPath {
 protected:
  SyncOptions options(const Service& service) {
    SyncOptions options;
    options.folder = (here_ / "local").string();
    options.destination = "in";
    options.settle = 0.2;
    options.connect = [&] { return service.path(); };
    return options;
  }
  // Waits for what should happen, without a hurry.
  template <class Condition>
  static bool comes(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
};

TEST_F(CopySync, OnceShipsWhatIsThere) {
  make_tree(here_ / "local", 30);
  write_file(here_ / "local/.hidden", "no");
  write_file(here_ / "local/.git/x", "no");
  write_file(here_ / "local/a.tmp", "no");
  write_file(here_ / "local/b.part", "no");
  Service service(here_ / "served", security_);
  SyncOptions once = options(service);
  once.once = true;
  EXPECT_EQ(Sync(once).run().files, 31u);
  EXPECT_EQ(read_file(here_ / "served/in/d1/e1/file 1.dat"), read_file(here_ / "local/d1/e1/file 1.dat"));
  for (const char* name : {".hidden", ".git", "a.tmp", "b.part"})
    EXPECT_FALSE(fs::exists(here_ / "served/in" / name)) << name;
  EXPECT_EQ(Sync(once).run().files, 0u);
}

TEST_F(CopySync, ShipsFilesAsTheyAreClosedOrMovedIn) {
  Service service(here_ / "served", security_);
  SyncOptions watching = options(service);
  std::atomic<bool> stop{false};
  watching.stop = [&] { return stop.load(); };
  Sync sync(watching);
  std::thread running([&] { sync.run(); });
  const fs::path local = here_ / "local", there = here_ / "served/in";
  write_file(local / "first", "1");
  EXPECT_TRUE(comes([&] { return fs::exists(there / "first"); }));
  write_file(local / "new/folder/second", "2");
  EXPECT_TRUE(comes([&] { return fs::exists(there / "new/folder/second"); }));
  write_file(local / "third.tmp", "3");
  fs::rename(local / "third.tmp", local / "new/third");
  EXPECT_TRUE(comes([&] { return fs::exists(there / "new/third"); }));
  write_file(local / "first", "changed");
  EXPECT_TRUE(comes([&] { return read_file(there / "first") == "changed"; }));
  // One that stays open is not complete, however long it is left alone.
  std::FILE* open = std::fopen((local / "open").c_str(), "w");
  std::fputs("half", open);
  std::fflush(open);
  write_file(local / "after", "x");
  EXPECT_TRUE(comes([&] { return fs::exists(there / "after"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_FALSE(fs::exists(there / "open"));
  std::fclose(open);
  EXPECT_TRUE(comes([&] { return fs::exists(there / "open"); }));
  EXPECT_FALSE(fs::exists(there / "third.tmp"));
  stop = true;
  running.join();
}

TEST_F(CopySync, GoesOnAfterTheServerWasAway) {
  auto service = std::make_unique<Service>(here_ / "served", security_);
  const Endpoint where{"127.0.0.1", service->port()};
  SyncOptions watching = options(*service);
  PathSettings settings = test::streams(2);
  settings.patience = 2;
  watching.connect = [&] { return Path::connect(where, security_, settings, {"test"}); };
  std::atomic<bool> stop{false};
  watching.stop = [&] { return stop.load(); };
  Sync sync(watching);
  std::thread running([&] { sync.run(); });
  write_file(here_ / "local/a", "A");
  EXPECT_TRUE(comes([&] { return fs::exists(here_ / "served/in/a"); }));
  service.reset();
  write_file(here_ / "local/b", "B");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  service = std::make_unique<Service>(here_ / "served", security_, where.port);
  EXPECT_TRUE(comes([&] { return fs::exists(here_ / "served/in/b"); }));
  stop = true;
  running.join();
}

TEST_F(CopySync, GoesOnAfterANameHadNoAddress) {
  Service service(here_ / "served", security_);
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
  std::atomic<bool> stop{false};
  watching.stop = [&] { return stop.load(); };
  Sync sync(watching);
  std::thread running([&] { EXPECT_NO_THROW(sync.run()); });
  write_file(here_ / "local/a", "A");
  EXPECT_TRUE(comes([&] { return fs::exists(here_ / "served/in/a"); }));
  stop = true;
  running.join();
  EXPECT_EQ(calls, 4);
}

TEST_F(CopySync, ANameWithoutAddressAtFirstIsAnError) {
  Service service(here_ / "served", security_);
  write_file(here_ / "local/a", "A");
  SyncOptions watching = options(service);
  watching.connect = [&]() -> Path { return Path::connect({"no-such-host.invalid", 1}, security_, test::streams(1)); };
  EXPECT_THROW(
      {
        try {
          Sync(watching).run();
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("no-such-host.invalid"), std::string::npos);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace maki::wan::copy
