#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kBatchesPosted = 8;

std::size_t limit_of(Tag tag) { return tag == kDataTag ? kMaxBatch : kMaxMessage; }
// Receives posted: file contents are long in flight and come in large messages; other tags need few.
std::size_t posted_of(Tag tag) { return tag == kDataTag ? kBatchesPosted : tag == kControlTag ? 1 : 4; }

}  // namespace

PathChannel::~PathChannel() {
  path_ = Path();  // closed: nothing is in flight after this
  for (const Lane& lane : lanes_) *all_ -= lane.bytes;
}

template <class Start>
Request PathChannel::start(Start start) {
  const std::lock_guard lock(closing_);
  check();
  return start();
}

void PathChannel::wait_for_oldest(Lane& lane) {
  auto& [request, bytes] = lane.sent.front();
  request.wait();
  lane.bytes -= bytes;
  *all_ -= bytes;
  lane.sent.pop_front();
}

bool PathChannel::has_room(const Lane& lane, std::size_t bytes) const {
  return lane.sent.empty() || (lane.bytes + bytes <= kUnderWay && *all_ + bytes <= kAllUnderWay);
}

void PathChannel::send(Tag tag, Bytes message) {
  Lane& to = lane(tag);
  const std::lock_guard lock(to.sending);
  while (!to.sent.empty() && (to.sent.front().first.test() || !has_room(to, message.size))) wait_for_oldest(to);
  const std::size_t bytes = message.size;
  to.sent.emplace_back(start([&] { return path_.start_send(tag, std::move(message)); }), bytes);
  to.bytes += bytes;
  *all_ += bytes;
}

Request& PathChannel::next_posted(Tag tag) {
  std::deque<Request>& posted = lane(tag).posted;
  while (posted.size() < posted_of(tag))
    posted.push_back(start([&] { return path_.start_receive_any(tag, limit_of(tag)); }));
  return posted.front();
}

Bytes PathChannel::receive(Tag tag) {
  const std::lock_guard lock(lane(tag).receiving);
  next_posted(tag).wait();
  Request next = std::move(lane(tag).posted.front());
  lane(tag).posted.pop_front();
  return next.take();
}

std::optional<Bytes> PathChannel::receive_for(Tag tag, double seconds) {
  {
    const std::lock_guard lock(lane(tag).receiving);
    if (!next_posted(tag).wait_for(seconds)) return {};
  }
  return receive(tag);  // it has arrived
}

void PathChannel::flush() {
  for (Lane& lane : lanes_) {
    const std::lock_guard lock(lane.sending);
    while (!lane.sent.empty()) wait_for_oldest(lane);
  }
}

void PathChannel::give_up() {
  given_up_ = true;
  const std::lock_guard lock(closing_);
  path_.close(0);
}

}  // namespace maki::wan::copy
