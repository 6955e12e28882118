#include "host/comm/mpi_ranks.hpp"

#include <algorithm>
#include <cstring>

#include "host/comm/heartbeat.hpp"
#include "kernels/error.hpp"

namespace maki::mpi {
namespace {

int peer_of(const Communicator::Outgoing& message) { return message.to; }
int peer_of(const Communicator::Incoming& message) { return message.from; }

}  // namespace

Exchange::Exchange(const Ranks& ranks, std::span<const Communicator::Outgoing> out,
                   std::span<const Communicator::Incoming> in, int tag, Communicator::Traffic& traffic)
    : ranks_(ranks), tag_(tag), traffic_(traffic), to_send_(cut(out, true)) {
  copy_own(out, in);
  const auto distance = [&](const Piece& piece) { return (piece.peer - ranks_.rank + ranks_.size) % ranks_.size; };
  std::stable_sort(to_send_.begin(), to_send_.end(),
                   [&](const Piece& a, const Piece& b) { return distance(a) < distance(b); });
  receive_all(cut(in, false));
  send_more();
}

template <class Message>
std::vector<Exchange::Piece> Exchange::cut(std::span<const Message> messages, bool sends) const {
  std::vector<Piece> pieces;
  for (const Message& message : messages) {
    const int peer = peer_of(message);
    if (peer < 0 || peer >= ranks_.size) throw Error("a message names rank " + std::to_string(peer), "there is none");
    if (peer == ranks_.rank) continue;
    char* data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(message.data)));
    for (std::size_t begin = 0; begin < message.bytes; begin += ranks_.limits.piece_bytes) {
      pieces.push_back({peer, data + begin, std::min(ranks_.limits.piece_bytes, message.bytes - begin), sends});
    }
  }
  return pieces;
}

void Exchange::copy_own(std::span<const Communicator::Outgoing> out, std::span<const Communicator::Incoming> in) const {
  auto mine = [&](const auto& message) { return peer_of(message) == ranks_.rank && message.bytes > 0; };
  auto to = std::find_if(in.begin(), in.end(), mine);
  for (const auto& message : out) {
    if (!mine(message)) continue;
    if (to == in.end() || to->bytes != message.bytes) {
      throw Error("a rank's message to itself has no place to go", "the sizes on both sides differ");
    }
    if (to->data != message.data) std::memmove(to->data, message.data, message.bytes);
    to = std::find_if(to + 1, in.end(), mine);
  }
  if (to != in.end()) throw Error("a rank expects a message from itself that it does not send");
}

void Exchange::receive_all(std::vector<Piece> pieces) {
  posted_ = std::move(pieces);
  requests_.reserve(posted_.size() + std::min(to_send_.size(), ranks_.limits.messages));
  for (const Piece& piece : posted_) {
    requests_.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, piece.peer, tag_, ranks_.comm,
                    &requests_.back()),
          "MPI_Irecv");
  }
}

void Exchange::send_more() {
  while (next_ < to_send_.size()) {
    const Piece& piece = to_send_[next_];
    const auto& limits = ranks_.limits;
    if (sending_ > 0 && (sending_ >= limits.messages || sending_bytes_ + piece.bytes > limits.bytes)) return;
    requests_.push_back(MPI_REQUEST_NULL);
    posted_.push_back(piece);
    check(MPI_Isend(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, piece.peer, tag_, ranks_.comm,
                    &requests_.back()),
          "MPI_Isend");
    ++next_, ++sending_, sending_bytes_ += piece.bytes;
    ++traffic_.messages, traffic_.bytes += piece.bytes, traffic_.empty += piece.bytes == 0;
  }
}

// Whether anything was completed.
bool Exchange::test() {
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
  if (count == 0 || count == MPI_UNDEFINED) return false;
  for (int i = 0; i < count; ++i) {
    const Piece& piece = posted_[done_[i]];
    int bytes = 0;
    if (!piece.sends) MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
    const int error = code == MPI_SUCCESS ? MPI_SUCCESS : statuses_[i].MPI_ERROR;
    if (!piece.sends && (error == MPI_ERR_TRUNCATE || (error == MPI_SUCCESS && std::size_t(bytes) != piece.bytes))) {
      throw Error(name_ranks({ranks_.in_world[piece.peer]}) + " sent a message of another size than expected",
                  "expected " + std::to_string(piece.bytes) + " bytes");
    }
    check(error, piece.sends ? "MPI_Isend" : "MPI_Irecv");
    if (piece.sends) --sending_, sending_bytes_ -= piece.bytes;
  }
  // Remove completed requests from both arrays.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i], posted_[kept] = posted_[i], ++kept;
  }
  requests_.resize(kept), posted_.resize(kept);
  return true;
}

std::vector<int> Exchange::pending() const {
  std::vector<int> peers;
  for (const Piece& piece : posted_) peers.push_back(piece.peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

Exchange::~Exchange() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  for (std::size_t i = 0; i < requests_.size() && !finalized; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (!posted_[i].sends) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
}

Communicator::Look Exchange::look() {
  using Look = Communicator::Look;
  const bool moved = !requests_.empty() && test();
  if (moved) send_more();
  return requests_.empty() ? Look::kDone : moved ? Look::kMoved : Look::kNothing;
}

void Exchange::run() {
  Patience patience(ranks_, "an exchange of messages");
  while (!requests_.empty()) {
    if (test()) {
      patience.refresh();
      send_more();
    } else {
      patience.pause([this] { return pending(); });
    }
  }
}

}  // namespace maki::mpi
