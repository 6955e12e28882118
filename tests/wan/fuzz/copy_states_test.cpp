// Copies with peers who hold the key and send well-formed messages in wrong orders, with wild numbers: nothing may crash,
// leave the folder that it was given, or keep others from being served.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/wan/fuzz/copy_maker.hpp"
#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"

namespace maki::wan::fuzz {
namespace {

namespace fs = std::filesystem;
using copy::Scratch;

constexpr std::uint64_t kFew = 900, kMany = 250'000;  // messages of a test; four of them are a million
constexpr std::uint64_t kOfACopy = 150;
constexpr int kCopies = 12;  // of a round, which has a listener and folders of its own

PathSettings small() {
  PathSettings settings = test::streams(1);
  settings.unmatched_limit = 1 << 20;
  settings.patience = 20;
  return settings;
}

// Sends what a CopyMaker makes, and takes what comes, over a path that keeps to the protocol.
class HostileCopier {
 public:
  HostileCopier(Random& random, Path path) : random_(random), maker_(random), path_(std::move(path)) {}
  ~HostileCopier() { path_.close(0); }

  void say(CopyMaker::Made made) {
    ++sent_;
    sending_.push_back(std::move(made.bytes));
    requests_.push_back(path_.start_send(made.tag, sending_.back()));
    while (!requests_.empty() && requests_.front().test()) requests_.pop_front(), sending_.pop_front();
  }
  // Messages until there are enough, or the path ends; what is not taken waits at the other side.
  void go_on() try {
    while (sent_ < kOfACopy && sending_.size() < 100) {
      say(maker_.next());
      const Tag tag = 1 + below(random_, 4);
      Request& taking = taking_[tag];
      if (!taking.valid())
        taking = path_.start_receive_any(tag, copy::kMaxBatch);
      else if (taking.wait_for(one_in(random_, 10) ? 0.002 : 0))
        taking = {};
    }
  } catch (const Error&) {  // it has had enough of us
  }
  CopyMaker& maker() { return maker_; }
  std::uint64_t sent() const { return sent_; }

 private:
  Random& random_;
  CopyMaker maker_;
  std::list<std::vector<std::byte>> sending_;
  std::deque<Request> requests_;
  std::map<Tag, Request> taking_;
  Path path_;
  std::uint64_t sent_ = 0;
};

// A folder for one side, with a file beside it that nobody may touch and a link that leads to it.
struct Place {
  Scratch scratch;
  fs::path folder = scratch / "folder";
  Place() {
    copy::write_file(scratch / "outside", "secret");
    copy::make_tree(folder / "tree", 5);
    copy::write_file(folder / "a", copy::random_text(30000, 1));
    fs::create_symlink("../outside", folder / "link");
  }
  void expect_kept() const {
    EXPECT_EQ(copy::read_file(scratch / "outside"), "secret");
    EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 2);
  }
};

class CopyStates : public testing::TestWithParam<bool> {
 protected:
  Security security() { return GetParam() ? test::new_key(keys_) : test::insecure(); }
  static const char* mode() { return GetParam() ? "encrypted" : "plain"; }
  void clients(std::uint64_t messages);
  void servers(std::uint64_t messages);
  test::TemporaryFolder keys_;
};

void CopyStates::clients(std::uint64_t messages) {
  const Security security = this->security();
  run_rounds(std::string("hostile copy client, ") + mode(), messages, [&](std::uint64_t seed) {
    Random random(seed);
    Place place;
    copy::ServerOptions options = copy::sharing(place.folder);
    options.others->read_only = one_in(random, 4);
    copy::RunningServer server(options, security, small());
    const auto connect = [&] { return Path::connect(server.address(), security, small()); };
    std::uint64_t sent = 0;
    for (int copies = 0; copies < kCopies; ++copies) {
      HostileCopier copier(random, connect());
      using Action = copy::Order::Action;
      if (!one_in(random, 8)) copier.say(copier.maker().order(one_in(random, 2) ? Action::kPush : Action::kPull));
      copier.go_on();
      sent += copier.sent();
    }
    copy::write_file(place.folder / "honest", "honest");
    const fs::path got = place.folder / "got";
    EXPECT_TRUE(copy::Client(connect()).pull({"honest"}, got.string()).complete());
    EXPECT_EQ(copy::read_file(got), "honest");
    server.stop();
    place.expect_kept();
    return sent;
  });
}

void CopyStates::servers(std::uint64_t messages) {
  const Security security = this->security();
  run_rounds(std::string("hostile copy server, ") + mode(), messages, [&](std::uint64_t seed) {
    Random random(seed);
    Place place;
    Listener listener({"127.0.0.1", 0}, security, small());
    std::uint64_t sent = 0;
    for (int copies = 0; copies < kCopies; ++copies) {
      const bool pulls = one_in(random, 2);
      auto copied = std::async(std::launch::async, [&] {
        copy::Client client(Path::connect(listener.address(), security, small()));
        if (pulls)
          client.pull({"a", "tree"}, (place.folder / "got").string());
        else
          client.push({(place.folder / "tree").string(), (place.folder / "a").string()}, "there/");
      });
      {
        HostileCopier copier(random, std::move(listener.accept().path));
        if (!one_in(random, 8)) copier.say(copier.maker().agreement());
        copier.go_on();
        sent += copier.sent();
      }
      if (copied.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
        std::fputs("the copy hangs\n", stderr);
        std::abort();  // nothing would end it
      }
      try {
        copied.get();
      } catch (const Error&) {  // that is how it should end
      }
    }
    place.expect_kept();
    return sent;
  });
}

TEST_P(CopyStates, HostileClients) { clients(kFew); }
TEST_P(CopyStates, HostileServers) { servers(kFew); }
class FullCopyStates : public CopyStates {};
TEST_P(FullCopyStates, HostileClients) { clients(kMany); }
TEST_P(FullCopyStates, HostileServers) { servers(kMany); }

const auto name = [](const auto& info) { return std::string(info.param ? "Encrypted" : "Plain"); };
INSTANTIATE_TEST_SUITE_P(Fuzz, CopyStates, testing::Bool(), name);
INSTANTIATE_TEST_SUITE_P(Full, FullCopyStates, testing::Bool(), name);

}  // namespace
}  // namespace maki::wan::fuzz
