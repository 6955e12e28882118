// Messages in transit: sent, received, and passed on by this site.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "wan/net/error.hpp"
#include "wan/sites/net_ring.hpp"

namespace maki::sites {

namespace {

constexpr double kNoticeTime = 2;  // seconds for the notice of why the path ends
constexpr std::size_t kMessageCost =
    256;  // bytes that a message takes besides its contents: many empty ones take memory too

// The header, followed by the message where that is small.
std::vector<std::byte> head_of(const Header& header, std::span<const std::byte> message) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> head(bytes.begin(), bytes.end());
  if (header.inlined()) head.insert(head.end(), message.begin(), message.end());
  return head;
}

}  // namespace

// Returns at once: the path reads from the message until the release thread lets go of it.
void NetRing::post(Link& link, Phase phase, Header header, const SharedMessage& message) {
  header.bytes = message->size();
  header.piece = kPieceBytes;
  const wan::Tag tag = tag_of(routes_.me, phase);
  post_bytes(link, tag, head_of(header, *message), message);
  if (header.inlined()) return;
  const std::span<const std::byte> whole = *message;
  for (std::size_t begin = 0; begin < whole.size(); begin += header.piece)
    post_bytes(link, tag, whole.subspan(begin, std::min<std::size_t>(header.piece, whole.size() - begin)), message);
}

void NetRing::post_to_all(Phase phase, Header header, const SharedMessage& message) {
  header.to_all = 1;
  header.last = static_cast<std::uint16_t>(routes_.last_right());
  post(right(), phase, header, message);
  header.last = static_cast<std::uint16_t>(routes_.last_left());
  if (links_.size() > 1) post(left(), phase, header, message);
}

// `owner`: stays until the bytes are acknowledged, or the path has copied them.
void NetRing::post_bytes(Link& link, wan::Tag tag, std::span<const std::byte> bytes, const SharedMessage& owner) {
  try {
    wan::Request request = link.path.start_send(tag, bytes);
    if (request.test()) return;
    const std::lock_guard lock(mutex_);
    link.unacknowledged.emplace_back(std::move(request), owner);
    changed_.notify_all();
  } catch (const wan::PathError& error) {
    report_loss(link, error);
  }
}

void NetRing::run_releases(Link& link) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !link.unacknowledged.empty(); });
    if (link.unacknowledged.empty()) return;
    auto oldest = std::move(link.unacknowledged.front());
    link.unacknowledged.pop_front();
    link.awaiting_oldest = true;
    lock.unlock();
    try {
      oldest.first.wait();
    } catch (const wan::PathError& error) {
      report_loss(link, error);
    }
    oldest = {};
    lock.lock();
    link.awaiting_oldest = false;
    changed_.notify_all();
  }
}

void NetRing::run_lane(Lane& lane) {
  try {
    std::vector<std::byte> room(kSmallPiece);
    while (receive_message(lane, room)) {
    }
    end_reader(*lane.from);
  } catch (const wan::PathError& error) {
    end_reader(*lane.from);
    report_loss(*lane.from, error);
  } catch (const std::exception& error) {
    fail_lane(lane, error);
  }
  const std::lock_guard lock(mutex_);
  lane.ended = true;
  changed_.notify_all();
}

// Ends the run at all sites: a message is malformed, or there is no memory for it.
void NetRing::fail_lane(Lane& lane, const std::exception& error) {
  const std::string text = "what site " + name(lane.origin) + " sends cannot be taken (" +
                           maki::sites::name(lane.phase) + " at site " + name(routes_.me) + ": " + message_of(error) +
                           ")";
  fail(Error(text));
  lane.from->path.close(kNoticeTime);  // so that nothing more is written to memory of this lane
}

bool NetRing::receive_message(Lane& lane, std::span<std::byte> room) {
  const wan::Tag tag = tag_of(lane.origin, lane.phase);
  wan::Request request = lane.from->path.start_receive(tag, room);
  request.wait();
  const std::span<const std::byte> head = room.first(request.size());
  const auto header = header_of(head, routes_.count);
  if (!header) throw Error("it is no message of this version");
  if (!routes_.passes(lane.origin, header->last)) throw Error("a message has lost its way");
  const bool ends_here = header->last == routes_.me, for_me = ends_here || header->to_all != 0;
  Link* const onward = ends_here ? nullptr : lane.onward;
  SharedMessage message = allocate(header->bytes);
  if (onward != nullptr) {
    if (header->inlined()) count_passed_on(lane.phase, message->size());
    post_bytes(*onward, tag, head, message);
  }
  if (header->inlined()) {
    std::copy(head.begin() + sizeof(Header), head.end(), message->begin());
  } else {
    receive_pieces(lane, *header, onward, message);
  }
  if (header->kind == Header::kEnd) return false;
  if (for_me) {
    const std::lock_guard lock(mutex_);
    lane.arrived.emplace_back(header->number, std::move(message));
    changed_.notify_all();
  }
  return true;
}

// Memory for an incoming message, counted until its last owner releases it.
SharedMessage NetRing::allocate(std::size_t bytes) {
  const std::size_t cost = bytes + kMessageCost;
  if (held_bytes_.fetch_add(cost) + cost > memory_limit_) {
    held_bytes_ -= cost;
    throw Error("there is no room for " + std::to_string(bytes) + " bytes more than the " +
                std::to_string(held_bytes_) + " that wait to be received");
  }
  const SharedMessage message(new Message, [this, cost](Message* gone) {
    delete gone;
    held_bytes_ -= cost;
  });
  message->resize(bytes);
  return message;
}

// Each piece is passed on as soon as it has arrived, while the next one arrives.
void NetRing::receive_pieces(Lane& lane, const Header& header, Link* onward, const SharedMessage& message) {
  const wan::Tag tag = tag_of(lane.origin, lane.phase);
  const std::span<std::byte> whole = *message;
  struct Piece {
    std::span<std::byte> bytes;
    wan::Request request;
  };
  std::vector<Piece> pieces;
  try {
    for (std::size_t begin = 0; begin < whole.size(); begin += header.piece) {
      const auto bytes = whole.subspan(begin, std::min<std::size_t>(header.piece, whole.size() - begin));
      pieces.push_back({bytes, lane.from->path.start_receive(tag, bytes)});
    }
    for (Piece& piece : pieces) {
      piece.request.wait();
      if (piece.request.size() != piece.bytes.size()) throw Error("a piece has another size");
      if (onward == nullptr) continue;
      count_passed_on(lane.phase, piece.bytes.size());
      post_bytes(*onward, tag, piece.bytes, message);
    }
  } catch (const wan::PathError&) {
    throw;  // the path has let go of all pieces
  } catch (const std::exception& error) {
    fail_lane(lane, error);
    throw wan::PathError("the path was given up");
  }
}

// Throws Error for a message that is too long, and what has ended the run.
void NetRing::count_sent(Phase phase, std::size_t links, const Message& message) {
  if (message.size() > kLongestMessage)
    throw Error("a message of " + std::to_string(message.size()) + " bytes to other sites",
                "at most " + std::to_string(kLongestMessage) + " travel in one");
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
  traffic.messages_sent += links;
  traffic.bytes_sent += links * message.size();
}

// Before the bytes are passed on: who has received them finds them counted.
void NetRing::count_passed_on(Phase phase, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  traffic_[static_cast<std::size_t>(phase)].bytes_passed_on += bytes;
}

// The loss of a site.

namespace {

// Time for messages that were sent before a notice, on other streams.
constexpr auto kNoticeDelay = std::chrono::milliseconds(500);
// For the threads that read from a path that its peer has closed; they may wait for each other over two such paths.
constexpr auto kReadersEnd = std::chrono::seconds(10);

// What was seen of the loss: the error's text without its advice.
std::string observation(const wan::PathError& error) {
  const std::string text = error.what();
  if (error.seconds_down() <= 0) return text;
  std::string seen = fmt::format("nothing was heard of it for {:.1f} s", error.seconds_down());
  const std::string_view begin = error.refused() ? "refuses the path (" : "last attempt: ";
  const auto attempt = text.find(begin);
  if (attempt == std::string::npos) return seen;
  const auto from = attempt + begin.size();
  const auto end = text.rfind(error.refused() ? ")" : "): look at");
  return seen + "; last attempt: " + text.substr(from, end - from);
}

}  // namespace

void NetRing::throw_if_failed() const {
  if (failed_) std::rethrow_exception(failed_);
}

template <class Failure>
void NetRing::fail(const Failure& error, const Link* informed) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || stopping_) return;
    failed_ = std::make_exception_ptr(error);
    changed_.notify_all();
  }
  for (Link& link : links_)
    if (&link != informed) send_notice(link.path, Notice::kLost, error.what());
}

void NetRing::fail_by_loss(int site, const std::string& seen, const Link* informed) {
  fail(SiteLost("site " + name(site) + " is lost", "seen by site " + name(routes_.me) + ": " + seen), informed);
}

void NetRing::report_loss(const Link& link, const wan::PathError& error) {
  if (error.seconds_down() <= 0) {  // the peer has closed it: its notice, or what it sent before, tells why
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kReadersEnd, [&] { return failed_ || stopping_ || link.readers == 0; });
  }
  fail_by_loss(link.site, observation(error));
}

double NetRing::wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over,
                           const std::function<Awaited()>& awaited, double usual) {
  const auto begun = wan::WallClock::now();
  double next_line = wait_lines_;
  while (!changed_.wait_for(lock, std::chrono::seconds(1), over)) {
    const Awaited missing = awaited();
    const double waited = wan::seconds_since(begun);
    lock.unlock();
    if (waited >= next_line) {
      wan::log(wan::LogLevel::kInfo, waiting_for(missing, waited));
      next_line += wait_lines_;
    }
    leave_if_asked(missing, waited, usual);
    lock.lock();
  }
  return wan::seconds_since(begun);
}

std::string NetRing::waiting_for(const Awaited& awaited, double waited) const {
  return fmt::format("waiting for {} of site {} for {:.0f} s", awaited.what, name(awaited.site), waited);
}

bool NetRing::has_ended(const Link& link) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(lanes_, [&](const auto& lane) { return !lane || lane->from != &link || lane->ended; });
}

void NetRing::leave_if_asked(const Awaited& awaited, double waited, double usual) {
  if (!asked_to_leave_ || !asked_to_leave_()) return;
  double longest = kLeaveAfter;
  const Link* down = nullptr;
  for (const Link& link : links_) {
    longest = std::min(longest, link.path.settings().patience);
    if (down == nullptr && !link.path.status().up && !has_ended(link)) down = &link;
  }
  if (down == nullptr && waited < std::max(longest, 2 * usual)) return;
  fail_by_loss(down ? down->site : awaited.site,
               (down ? "the path is down" : waiting_for(awaited, waited)) + ", and the run is asked to stop");
}

void NetRing::await_notice(Link& link) {
  try {
    link.notice.wait();
    const wan::Bytes notice = link.notice.take();
    const std::string text = notice_text(notice.view());
    const bool lost = notice_kind(notice.view()) == Notice::kLost;
    {  // what was sent before it may tell why
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kNoticeDelay, [&] { return failed_ || stopping_; });
    }
    lost ? fail(SiteLost(text), &link) : fail(Error(text), &link);
  } catch (const wan::Error&) {
    // The path has ended: the calls that wait for a message judge whether that is a loss.
  }
  end_reader(link);
}

void NetRing::end_reader(Link& link) {
  const std::lock_guard lock(mutex_);
  --link.readers;
  changed_.notify_all();
}

}  // namespace maki::sites
