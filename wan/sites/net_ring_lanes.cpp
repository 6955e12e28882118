// Messages on their way: out, in, and past this site.
#include <algorithm>
#include <cstring>
#include <new>

#include "wan/net/error.hpp"
#include "wan/sites/net_ring_core.hpp"

namespace maki::sites {
namespace {

constexpr double kLastWords = 2;           // seconds to tell why the path ends
constexpr std::size_t kMessageCost = 256;  // of a message beside its bytes: many empty ones take memory too

// Header and, where it is small, message in one.
std::vector<std::byte> head_of(const Header& header, std::span<const std::byte> message) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> head(bytes.begin(), bytes.end());
  if (header.inlined()) head.insert(head.end(), message.begin(), message.end());
  return head;
}

}  // namespace

// Nothing waits here: the path reads from the message until the keeper lets go of it.
void NetRing::Core::put(Link& link, Phase phase, Header header, const SharedMessage& message) {
  header.bytes = message->size();
  header.piece = kPieceBytes;
  const wan::Tag tag = tag_of(ways.me, phase);
  put_bytes(link, tag, head_of(header, *message), nullptr);
  if (header.inlined()) return;
  const std::span<const std::byte> whole = *message;
  for (std::size_t begin = 0; begin < whole.size(); begin += header.piece)
    put_bytes(link, tag, whole.subspan(begin, std::min<std::size_t>(header.piece, whole.size() - begin)), message);
}

void NetRing::Core::put_for_all(Phase phase, Header header, const SharedMessage& message) {
  header.for_all = 1;
  header.last = static_cast<std::uint16_t>(ways.last_right());
  put(right(), phase, header, message);
  header.last = static_cast<std::uint16_t>(ways.last_left());
  if (links_.size() > 1) put(left(), phase, header, message);
}

// `owner` of the bytes; null for those so few that the path copies them.
void NetRing::Core::put_bytes(Link& link, wan::Tag tag, std::span<const std::byte> bytes, const SharedMessage& owner) {
  try {
    wan::Request request = link.path.start_send(tag, bytes);
    if (request.test() || !owner) return;
    const std::lock_guard lock(mutex_);
    link.kept.emplace_back(std::move(request), owner);
    changed_.notify_all();
  } catch (const wan::PathError& error) {
    lose(link, error);
  }
}

void NetRing::Core::run_keeper(Link& link) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !link.kept.empty(); });
    if (link.kept.empty()) return;
    auto oldest = std::move(link.kept.front());
    link.kept.pop_front();
    link.keeping = true;
    lock.unlock();
    try {
      oldest.first.wait();
    } catch (const wan::PathError& error) {
      lose(link, error);
    }
    oldest = {};
    lock.lock();
    link.keeping = false;
    changed_.notify_all();
  }
}

void NetRing::Core::run_lane(Lane& lane) {
  try {
    std::vector<std::byte> room(kSmallPiece);
    while (take_message(lane, room)) {
    }
  } catch (const wan::PathError& error) {
    lose(*lane.from, error);
  } catch (const std::exception& error) {
    give_up(lane, error);
  }
  const std::lock_guard lock(mutex_);
  lane.ended = true;
  changed_.notify_all();
}

// What came cannot be, or there is no memory for it: the run ends everywhere.
void NetRing::Core::give_up(Lane& lane, const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const std::string text = "what site " + name(lane.origin) + " sends cannot be taken (" +
                           maki::sites::name(lane.phase) + " at site " + name(ways.me) + ": " +
                           (memory ? "out of memory" : error.what()) + ")";
  fail(std::make_exception_ptr(Error(text)), text, nullptr);
  lane.from->path.close(kLastWords);  // so that nothing more is written to memory of this lane
}

bool NetRing::Core::take_message(Lane& lane, std::span<std::byte> room) {
  const wan::Tag tag = tag_of(lane.origin, lane.phase);
  wan::Request request = lane.from->path.start_receive(tag, room);
  request.wait();
  const std::span<const std::byte> head = room.first(request.size());
  const auto header = header_of(head, ways.count);
  if (!header) throw Error("it is no message of this version");
  if (!ways.on_way(lane.origin, header->last)) throw Error("a message has lost its way");
  const bool ends_here = header->last == ways.me, for_me = ends_here || header->for_all != 0;
  Link* const onward = ends_here ? nullptr : lane.onward;
  SharedMessage message = make_room(header->bytes);
  if (onward != nullptr) put_bytes(*onward, tag, head, nullptr);
  if (header->inlined()) {
    std::copy(head.begin() + sizeof(Header), head.end(), message->begin());
    if (onward != nullptr) count_passed_on(lane.phase, message->size());
  } else {
    take_pieces(lane, *header, onward, message);
  }
  if (header->kind == Header::kEnd) return false;
  if (for_me) {
    const std::lock_guard lock(mutex_);
    lane.arrived.emplace_back(header->number, std::move(message));
    changed_.notify_all();
  }
  return true;
}

// For what comes, until nobody has it any more.
SharedMessage NetRing::Core::make_room(std::size_t bytes) {
  const std::size_t cost = bytes + kMessageCost;
  if (held_.fetch_add(cost) + cost > most_held_) {
    held_ -= cost;
    throw Error("there is no room for " + std::to_string(bytes) + " bytes more than the " + std::to_string(held_) +
                " that wait to be received");
  }
  const SharedMessage message(new Message, [this, cost](Message* gone) {
    delete gone;
    held_ -= cost;
  });
  message->resize(bytes);
  return message;
}

// Each piece goes on its way as it has come, while the next one comes.
void NetRing::Core::take_pieces(Lane& lane, const Header& header, Link* onward, const SharedMessage& message) {
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
      put_bytes(*onward, tag, piece.bytes, message);
      count_passed_on(lane.phase, piece.bytes.size());
    }
  } catch (const wan::PathError&) {
    throw;  // the path has let go of all of them
  } catch (const std::exception& error) {
    give_up(lane, error);
    throw wan::PathError("the path was given up");
  }
}

void NetRing::Core::count_passed_on(Phase phase, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  traffic_[static_cast<std::size_t>(phase)].bytes_passed_on += bytes;
}

}  // namespace maki::sites
