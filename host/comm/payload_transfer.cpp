#include "host/comm/payload_transfer.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <set>
#include <utility>

#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

namespace maki {

namespace {

using Look = Communicator::Look;
thread_local std::vector<FollowedTransfers*> of_this_thread;

}  // namespace

FollowedTransfers::FollowedTransfers(const Communicator& ranks) : ranks_(ranks) {
  of_this_thread.push_back(this);
  set_stream_waiter(&FollowedTransfers::wait_for);
}

FollowedTransfers::~FollowedTransfers() {
  try {
    const auto look = [this] { return under_way() > 0 ? Look::kNothing : Look::kDone; };
    if (std::uncaught_exceptions() == 0) ranks_.wait("an exchange between GPUs", look, [this] { return pending(); });
  } catch (const Error&) {  // nobody to report to
  }
  std::erase(of_this_thread, this);
  if (of_this_thread.empty()) set_stream_waiter(nullptr);
}

void FollowedTransfers::add(std::unique_ptr<PayloadTransfer> transfer) {
  under_way();
  transfers_.push_back(std::move(transfer));
}

// All are in one stream and complete in the order of their begin: checks end at the first incomplete one.
std::size_t FollowedTransfers::under_way() {
  while (!transfers_.empty() && transfers_.front()->look() == Look::kDone) transfers_.erase(transfers_.begin());
  return transfers_.size();
}

std::vector<int> FollowedTransfers::pending() const {
  return transfers_.empty() ? std::vector<int>{} : transfers_.front()->pending();
}

void FollowedTransfers::wait_for(const std::function<bool()>& reached) {
  const auto count = [] {
    std::size_t left = 0;
    for (FollowedTransfers* const one : of_this_thread) left += one->under_way();
    return left;
  };
  try {
    std::size_t left = count();
    if (left == 0) return;
    const auto busy = [](const FollowedTransfers* one) { return !one->transfers_.empty(); };
    const FollowedTransfers& first = **std::find_if(of_this_thread.begin(), of_this_thread.end(), busy);
    const auto look = [&] {
      const std::size_t before = std::exchange(left, count());
      if (left == 0 || reached()) return Look::kDone;
      return left < before ? Look::kMoved : Look::kNothing;
    };
    first.ranks_.wait("an exchange between GPUs", look, [&] { return first.pending(); });
  } catch (...) {  // ends streams that wait for the cancelled transfers
    for (FollowedTransfers* const one : of_this_thread) one->transfers_.clear();
    throw;
  }
}

StagingPool::Block StagingPool::take(std::size_t bytes) {
  // Sizes are powers of two, so that blocks can be reused when messages grow and shrink a little.
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
  const auto fits = [size](const Block& block) { return block->capacity() == size; };
  if (const auto found = std::find_if(free_.begin(), free_.end(), fits); found != free_.end()) {
    Block block = std::move(*found);
    free_.erase(found);
    return block;
  }
  auto block = std::make_unique<PinnedBuffer>();
  block->reserve(size);
  bytes_ += size;
  return block;
}

StagedTransfer::StagedTransfer(const Communicator& ranks, std::shared_ptr<StagingPool> pool, const Stream& stream,
                               PayloadMessages messages, int tag, std::size_t piece)
    : ranks_(ranks), pool_(std::move(pool)), tag_(tag), piece_(piece) {
  for (const auto& message : messages.out) sends_.push_back({message, 0, {}});
  for (const auto& message : messages.in) receives_.push_back({message, 0, {}});
  // Each rank begins with its next neighbour, so that no rank is the target of all at once. Messages between the same
  // two ranks are adjacent.
  const auto distance = [&](int to) { return (to - ranks_.rank() + ranks_.size()) % ranks_.size(); };
  std::stable_sort(sends_.begin(), sends_.end(),
                   [&](const Sending& a, const Sending& b) { return distance(a.message.to) < distance(b.message.to); });
  std::stable_sort(receives_.begin(), receives_.end(),
                   [](const Receiving& a, const Receiving& b) { return a.message.from < b.message.from; });
  pool_->stream().wait_for(stream);
  look();
}

StagedTransfer::~StagedTransfer() {
  if (sends_.empty() && receives_.empty()) return;
  try {  // cancelled: copies may still be in progress
    pool_->stream().synchronize();
  } catch (...) {  // reported already
  }
}

bool StagedTransfer::Sending::on_network() const {
  const auto sent = [](const Piece& piece) { return piece.transfer.has_value(); };
  return begun == message.bytes && std::all_of(pieces.begin(), pieces.end(), sent);
}

void StagedTransfer::copy_out(Sending& to) {
  const std::size_t bytes = std::min(piece_, to.message.bytes - to.begun);
  Piece piece{to.message.to, bytes, nullptr, pool_->take(bytes), {}, {}};
  queue_copy_to_host(pool_->stream(), piece.block->data(), static_cast<const char*>(to.message.data) + to.begun, bytes);
  piece.copied.set(pool_->stream());
  to.pieces.push_back(std::move(piece));
  to.begun += bytes;
  ++sending_;
}

// Sends the pieces that have been copied to the host, and copies further ones there.
bool StagedTransfer::send_on(Sending& to) {
  bool moved = false;
  for (Piece& piece : to.pieces) {
    if (piece.transfer) continue;
    if (!piece.copied.reached()) break;
    const Communicator::Outgoing out{piece.peer, piece.block->data(), piece.bytes};
    piece.transfer = ranks_.begin_exchange({&out, 1}, {}, tag_);
    moved = true;
  }
  while (!to.pieces.empty() && to.pieces.front().transfer && to.pieces.front().transfer->progress()) {
    pool_->give(std::move(to.pieces.front().block));
    to.pieces.erase(to.pieces.begin());
    --sending_;
    moved = true;
  }
  while (to.begun < to.message.bytes && to.pieces.size() < kOfMessage && sending_ < kSends) {
    copy_out(to);
    moved = true;
  }
  return moved;
}

void StagedTransfer::post(Receiving& from) {
  const std::size_t bytes = std::min(piece_, from.message.bytes - from.begun);
  Piece piece{from.message.from, bytes, static_cast<char*>(from.message.data) + from.begun, pool_->take(bytes), {}, {}};
  const Communicator::Incoming in{piece.peer, piece.block->data(), bytes};
  piece.transfer = ranks_.begin_exchange({}, {&in, 1}, tag_);
  from.pieces.push_back(std::move(piece));
  from.begun += bytes;
}

// Copies received pieces to the device, and posts further receives.
bool StagedTransfer::receive_on(Receiving& from) {
  bool moved = false;
  for (Piece& piece : from.pieces) {
    if (!piece.transfer) continue;
    if (!piece.transfer->progress()) break;
    piece.transfer.reset();
    queue_copy_to_device(pool_->stream(), piece.place, piece.block->data(), piece.bytes);
    piece.copied.set(pool_->stream());
    moved = true;
  }
  while (!from.pieces.empty() && !from.pieces.front().transfer && from.pieces.front().copied.reached()) {
    pool_->give(std::move(from.pieces.front().block));
    from.pieces.erase(from.pieces.begin());
    moved = true;
  }
  while (from.begun < from.message.bytes && from.pieces.size() < kOfMessage) {
    post(from);
    moved = true;
  }
  return moved;
}

// Messages between the same two ranks are distinguished by their order alone: each waits for those before it.
Communicator::Look StagedTransfer::look() {
  bool moved = false;
  int busy = -1;  // a rank with an earlier message not completely posted
  for (Receiving& from : receives_) {
    if (from.message.from == busy) continue;
    moved |= receive_on(from);
    if (from.begun < from.message.bytes) busy = from.message.from;
  }
  busy = -1;
  for (Sending& to : sends_) {
    if (to.message.to == busy) continue;
    moved |= send_on(to);
    if (!to.on_network()) busy = to.message.to;
  }
  const auto done = [](const auto& m) { return m.begun == m.message.bytes && m.pieces.empty(); };
  std::erase_if(receives_, done);
  std::erase_if(sends_, done);
  if (receives_.empty() && sends_.empty()) return Communicator::Look::kDone;
  return moved ? Communicator::Look::kMoved : Communicator::Look::kNothing;
}

std::vector<int> StagedTransfer::pending() const {
  std::set<int> peers;
  for (const Sending& to : sends_) peers.insert(to.message.to);
  for (const Receiving& from : receives_) peers.insert(from.message.from);
  return {peers.begin(), peers.end()};
}

}  // namespace maki
