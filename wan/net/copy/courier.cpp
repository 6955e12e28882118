#include "wan/net/copy/courier.hpp"

namespace maki::wan::copy {
namespace {

constexpr std::size_t kBatchesPosted = 8;

std::size_t limit_of(Tag tag) { return tag == kDataTag ? kMaxBatch : kMaxMessage; }
// Contents are long on their way and come in large messages; of the others a few are enough.
std::size_t posted_of(Tag tag) { return tag == kDataTag ? kBatchesPosted : tag == kControlTag ? 1 : 4; }

}  // namespace

PathCourier::~PathCourier() {
  path_ = Path();  // closed: nothing is under way after this, and the messages' memory may go
  for (Lane& lane : lanes_)
    for (Sending& sending : lane.sent) try {
        sending.request.wait();
      } catch (const Error&) {
      }
}

template <class Start>
Request PathCourier::start(Start start) {
  const std::lock_guard lock(closing_);
  if (given_up_) throw PathError("The connection to " + peer_ + " was given up");
  return start();
}

void PathCourier::wait_for_oldest(Lane& lane) {
  lane.sent.front().request.wait();
  lane.bytes -= lane.sent.front().message.size;
  lane.sent.pop_front();
}

void PathCourier::send(Tag tag, Bytes message) {
  Lane& to = lane(tag);
  const std::lock_guard lock(to.sending);
  while (!to.sent.empty() && (to.sent.front().request.test() || to.bytes + message.size > kUnderWay))
    wait_for_oldest(to);
  to.bytes += message.size;
  const auto view = message.view();
  to.sent.push_back({start([&] { return path_.start_send(tag, view); }), std::move(message)});
}

Bytes PathCourier::receive(Tag tag) {
  Lane& from = lane(tag);
  const std::lock_guard lock(from.receiving);
  while (from.posted.size() < posted_of(tag))
    from.posted.push_back(start([&] { return path_.start_receive_any(tag, limit_of(tag)); }));
  Request next = from.posted.front();
  next.wait();
  from.posted.pop_front();
  return next.take();
}

void PathCourier::flush() {
  for (Lane& lane : lanes_) {
    const std::lock_guard lock(lane.sending);
    while (!lane.sent.empty()) wait_for_oldest(lane);
  }
}

void PathCourier::give_up() {
  const std::lock_guard lock(closing_);
  given_up_ = true;
  path_.close(0);
}

}  // namespace maki::wan::copy
