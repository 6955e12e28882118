#include "tests/wan/fuzz/attack.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace maki::wan::fuzz {
namespace {

constexpr std::size_t kLeft = 6, kUses = 40;
constexpr std::uint32_t kNumbers = 4;

}  // namespace

// ---- the hostile end ----

void Attack::add(Number number, std::unique_ptr<test::HandMadeStream> stream) {
  if (const auto place = streams_.find(number); place != streams_.end()) leave(place);
  streams_[number] = std::move(stream);
}

// Closes it, or leaves it open and silent.
void Attack::leave(Streams::iterator at) {
  if (one_in(random_, 2)) left_.push_back(std::move(at->second));
  if (left_.size() > kLeft) left_.pop_front();
  streams_.erase(at);
}

void Attack::act() {
  if (streams_.empty()) return;
  const auto at = std::next(streams_.begin(), static_cast<long>(below(random_, streams_.size())));
  test::HandMadeStream& stream = *at->second;
  ++sent_;
  bool lives = stream.drain();
  if (lives) {
    const FrameMaker::Made made = frames_.next();
    std::span<const std::byte> payload = made.payload;
    if (one_in(random_, 100)) payload = payload.first(below(random_, payload.size() + 1));
    lives = payload.size() == made.frame.length;  // else the next frame would be the rest of this one
    if (made.possible && lives) {
      stream.send(made.frame, payload);
    } else {
      stream.send_unchecked(made.frame);
      stream.send(payload);
    }
  }
  if (!lives) leave(at);
}

void HostileCaller::open() try {
  const auto number = static_cast<Number>(below(random_, kNumbers));
  auto stream = std::make_unique<test::HandMadeStream>(victim_, security_);
  const bool anew = session_ == SessionId{};
  Hello hello = test::hello_of(number, ++epochs_[number], session_);
  if (one_in(random_, 30)) hello.unmatched_limit = hello.message_limit = ~0ull;
  if (one_in(random_, 30)) hello.patience = one_in(random_, 2) ? 1e-300 : 1e300;
  const Welcome welcome = stream->greet(hello);
  if (welcome.answer == Answer::kUnknownSession) session_ = {}, epochs_.clear();
  if (welcome.answer != Answer::kWelcome) return;
  if (anew) frames_.new_session();
  session_ = welcome.session;
  add(number, std::move(stream));
} catch (const Error&) {  // the victim had no time for it
}

Welcome HostileListener::welcome() {
  Welcome welcome{.unmatched_limit = one_in(random_, 10) ? ~0ull : 1 << 20,
                  .message_limit = 1 << 20,
                  .patience = 60,
                  .reason = ""};
  welcome.session = session_;
  if (one_in(random_, 20)) welcome.session[0] ^= std::byte{1};
  if (one_in(random_, 40)) welcome.answer = static_cast<Answer>(below(random_, 6));
  return welcome;
}

void HostileListener::open() try {
  auto stream = std::make_unique<test::HandMadeStream>(listener_.accept(1), security_);
  const Hello hello = stream->hear();
  if (hello.is_new()) {
    session_.fill(static_cast<std::byte>(1 + below(random_, 200)));
    frames_.new_session();
  }
  std::vector<std::byte> words;
  const auto say = [&](const auto& block) { words.insert(words.end(), block.begin(), block.end()); };
  say(encode(welcome()));
  if (one_in(random_, 50)) words[below(random_, words.size())] = static_cast<std::byte>(random_());
  if (one_in(random_, 3))  // at once with the welcome
    say(encode(Frame{.type = FrameType::kPing, .sequence = random_()}));
  stream->send(words);
  add(hello.stream, std::move(stream));
} catch (const Error&) {  // nobody called, or the victim thought better of it
}

// ---- the honest end ----

void User::start() {
  const Tag tag = below(random_, kTags);
  const std::size_t sizes[] = {0, 100, 5000, 70000, 200000};
  Use& use = uses_.emplace_back();
  const std::size_t size = any_of(random_, sizes);
  switch (below(random_, 3)) {
    case 0:
      use.receives = use.any = true;
      use.request = path_.start_receive_any(tag, size);
      break;
    case 1:
      use.receives = true;
      use.buffer.resize(size);
      use.request = path_.start_receive(tag, use.buffer);
      break;
    default: use.buffer.resize(size); use.request = path_.start_send(tag, use.buffer);
  }
}

void User::change() {
  PathSettings settings = path_.settings();
  settings.receive_chunk = one_in(random_, 2) ? 4096 : 256 << 10;
  path_.change(settings);
}

bool User::settled(Use& use) {
  const auto right = [](std::byte byte) { return byte == kFilling; };
  try {
    if (!use.request.test()) return false;
    if (!use.receives) return true;
    if (use.any) {
      const Bytes bytes = use.request.take();
      use.buffer.assign(bytes.view().begin(), bytes.view().end());
    }
    EXPECT_TRUE(std::all_of(use.buffer.begin(), use.buffer.begin() + static_cast<long>(use.request.size()), right))
        << "bytes that nobody sent";
  } catch (const PathError&) {
    over_ = true;
  } catch (const Error&) {  // it did not fit
  }
  return true;
}

void User::act() try {
  uses_.remove_if([&](Use& use) { return settled(use); });
  if (over_) return;
  switch (below(random_, 40)) {
    case 0: path_.status(); break;
    case 1: change(); break;
    case 2: path_.drop_stream(static_cast<int>(below(random_, 6))); break;
    default:
      if (uses_.size() < kUses) start();
  }
} catch (const PathError&) {
  over_ = true;
} catch (const Error&) {  // a message is too long for the peer
  if (!uses_.back().request.valid()) uses_.pop_back();
}

}  // namespace maki::wan::fuzz
