// Copies with peers who hold the key and send well-formed messages in wrong orders, with wild numbers: nothing may
// crash, leave the folder that it was given, or keep others from being served.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "tests/wan/fuzz/rounds.hpp"
#include "tests/wan/net/copy/copy_fixture.hpp"
#include "wan/net/copy/client.hpp"
#include "wan/net/copy/message.hpp"

namespace maki::wan::fuzz {
namespace {

std::vector<std::byte> block(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

constexpr std::uint64_t kWild[] = {0,    1,       2,          100,        4096,       8191, 8192,
                                   8193, 1 << 20, 1ull << 40, 1ull << 61, 1ull << 62, ~0ull};

// Messages as a peer with a key might send them: each well formed (most of them), in any order, with any numbers.
class CopyMaker {
 public:
  explicit CopyMaker(Random& random) : random_(random) {}
  struct Made {
    Tag tag;
    std::vector<std::byte> bytes;
  };
  // Of either side.
  Made next() {
    // Orders and replies are few: the rest of a copy comes after them.
    const Tag tags[] = {copy::kPlanTag, copy::kDataTag, copy::kBackTag};
    return of(one_in(random_, 12) ? copy::kControlTag : any_of(random_, tags));
  }
  Made of(Tag tag) {
    using Action = copy::Order::Action;
    Made made{tag, {}};
    switch (tag) {
      case copy::kControlTag:
        made = one_in(random_, 2) ? order(any_of(random_, {Action::kPush, Action::kPull, Action::kBye})) : agreement();
        break;
      case copy::kPlanTag: made.bytes = block(copy::encode(piece()).view()); break;
      case copy::kDataTag: made.bytes = records(); break;
      default:
        made.bytes = one_in(random_, 3) ? block(copy::encode(results()).view()) : block(copy::encode(answers()).view());
    }
    if (one_in(random_, 40) && !made.bytes.empty())
      made.bytes[below(random_, made.bytes.size())] = static_cast<std::byte>(random_());
    if (one_in(random_, 100)) made.bytes.resize(below(random_, made.bytes.size() + 20));
    return made;
  }
  Made order(copy::Order::Action action) {
    copy::Order order{.action = action,
                      .checksum = one_in(random_, 3),
                      .sole_file = one_in(random_, 3),
                      .destination = path(),
                      .sources = {}};
    if (one_in(random_, 20)) order.version = static_cast<std::uint32_t>(random_());
    if (action == copy::Order::Action::kPull)
      for (auto i = below(random_, 4); i > 0; --i) order.sources.push_back(path());
    listed_ = answered_ = file_ = 0;
    return {copy::kControlTag, block(copy::encode(order).view())};
  }
  Made agreement() {
    using Word = copy::Reply::Word;
    const Word refused = one_in(random_, 20) ? Word::kLater : Word::kRefused;
    const copy::Reply reply{.word = one_in(random_, 20) ? refused : Word::kAgreed,
                            .sole_file = one_in(random_, 3),
                            .reason = path()};
    return {copy::kControlTag, block(copy::encode(reply).view())};
  }

 private:
  std::string path() {
    const char* const paths[] = {"a", "b", "d", "d/a", "d/e/f", "a/b", "tree/file 1.dat", "x", "y/z"};
    const char* const bad[] = {
        "",       "/",  "..",   "../outside",  "d/../../outside", "/etc/passwd", ".", "a//b", ".a.maki-part",
        "\x01\n", "a/", "link", "link/outside"};
    if (one_in(random_, 12)) return any_of(random_, bad);
    if (one_in(random_, 40)) return std::string(below(random_, 5000), 'n');
    return any_of(random_, paths);
  }
  std::uint64_t number() { return one_in(random_, 4) ? random_() : any_of(random_, kWild); }
  copy::Piece piece() {
    copy::Piece piece{.first = one_in(random_, 20) ? number() : listed_, .last = one_in(random_, 12), .entries = {}};
    for (auto i = below(random_, 12); i > 0; --i) {
      copy::Entry entry{.kind = one_in(random_, 4) ? copy::Kind::kFolder : copy::Kind::kFile, .path = path()};
      entry.size = one_in(random_, 10) ? std::min(number(), copy::kMaxFile) : below(random_, 20000);
      entry.mtime = static_cast<std::int64_t>(one_in(random_, 10) ? number() : 1000000000);
      entry.mode = static_cast<std::uint32_t>(below(random_, 01000));
      piece.entries.push_back(entry);
    }
    listed_ += piece.entries.size();
    return piece;
  }
  copy::Answers answers() {
    copy::Answers answers{.first = one_in(random_, 20) ? number() : answered_, .answers = {}};
    for (auto i = below(random_, 12); i > 0; --i) {
      copy::Answer answer{.request = static_cast<copy::FileRequest>(below(random_, 4)), .size = 0, .checksum = {}};
      if (answer.request == copy::FileRequest::kContinue || answer.request == copy::FileRequest::kCompare)
        answer.size = number();
      answers.answers.push_back(answer);
    }
    answered_ += answers.answers.size();
    return answers;
  }
  copy::Results results() {
    copy::Results results{.failures = {}, .done = one_in(random_, 8), .counts = {}};
    for (auto i = below(random_, 3); i > 0; --i)
      results.failures.push_back({one_in(random_, 2) ? number() : below(random_, 20), path()});
    results.counts.files = number();
    results.counts.bytes = number();
    return results;
  }
  std::vector<std::byte> records() {
    std::vector<std::byte> all;
    copy::RecordWriter writer(1 << 20, [&](Bytes message) { all = block(message.view()); });
    for (auto i = 1 + below(random_, 12); i > 0; --i) put_record(writer);
    writer.flush();
    return all;
  }
  void put_record(copy::RecordWriter& writer) {
    const std::uint64_t size = one_in(random_, 10) ? number() : below(random_, 20000);
    switch (below(random_, 12)) {
      case 0:
      case 1:
      case 2: {
        copy::Begin begin{.index = one_in(random_, 10) ? number() : file_++,
                          .size = size,
                          .mtime = static_cast<std::int64_t>(number()),
                          .mode = 0644};
        begin.offset = one_in(random_, 4) ? number() : 0;
        begin.same = one_in(random_, 10);
        return writer.put(begin);
      }
      case 3:
      case 4:
      case 5:
      case 6: {
        const auto bytes = below(random_, 4000);
        std::memset(writer.room(bytes).data(), 0xab, bytes);
        return writer.filled(bytes);
      }
      case 7: return writer.put(copy::Hole{one_in(random_, 2) ? number() : below(random_, 20000)});
      case 8:
      case 9: return writer.put(copy::End{});
      case 10:
        return one_in(random_, 2) ? writer.put(copy::Abandon{one_in(random_, 2) ? number() : file_, path()})
                                  : writer.put(copy::Note{one_in(random_, 2), path()});
      default:
        if (one_in(random_, 10)) writer.put(copy::Finish{});
    }
  }

  Random& random_;
  std::uint64_t listed_ = 0, answered_ = 0, file_ = 0;  // what an honest peer would be at
};

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

class CopyStates : public test::EncryptedOrPlain {};

TEST_P(CopyStates, HostileClients) {
  const Security security = this->security();
  run_rounds("hostile copy client, " + mode(), few_or_many(kFew, kMany), [&](std::uint64_t seed) {
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

TEST_P(CopyStates, HostileServers) {
  const Security security = this->security();
  run_rounds("hostile copy server, " + mode(), few_or_many(kFew, kMany), [&](std::uint64_t seed) {
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
      if (!test::is_over(copied)) {
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

INSTANTIATE_TEST_SUITE_P(Fuzz, CopyStates, testing::Bool(), test::name_of_mode);
INSTANTIATE_TEST_SUITE_P(Full, CopyStates, testing::Bool(), test::name_of_mode);

}  // namespace
}  // namespace maki::wan::fuzz
