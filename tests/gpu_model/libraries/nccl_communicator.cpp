#include "tests/gpu_model/libraries/nccl_communicator.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "tests/commands.hpp"

namespace gpu_model {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{10};  // at peers' processes

// Lives as long as a group's work is queued: tells of one that a device in error has dropped.
struct QueuedGroup {
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<MessageGroup> group;
  std::atomic<bool>& stopped;
  ~QueuedGroup() {
    if (!group->ended) stopped = true;
  }
};

}  // namespace

Communicator::Communicator(int ranks, int rank)
    : ranks_(ranks), rank_(rank), choices_(choices_seed() * kMostRanks + static_cast<unsigned>(rank)) {}

ncclResult_t Communicator::fail(ncclResult_t error, std::string reason) {
  reason_ = std::move(reason);
  return error_ = error;
}

ncclResult_t Communicator::enter(const ncclUniqueId& id, const char* bus_id) {
  std::string reason;
  if (const ncclResult_t result = board_.enter(id, ranks_, rank_, bus_id, reason); result != ncclSuccess)
    return fail(result, std::move(reason));
  keep_moving();
  return ncclInProgress;
}

bool Communicator::all_reached(RankState state) const {
  for (int r = 0; r < ranks_; ++r) {
    if (board_.entry(r).state.load() < state) return false;
  }
  return true;
}

// A rank that gave up, or whose process ended without leaving; empty: there is none.
std::string Communicator::lost_peer() {
  const auto now = std::chrono::steady_clock::now();
  const bool look_at_processes = now >= next_look_;
  if (look_at_processes) next_look_ = now + kBetweenLooks;
  for (int r = 0; r < ranks_; ++r) {
    const RankEntry& peer = board_.entry(r);
    const RankState before = peer.state;
    if (r == rank_ || before == RankState::kAbsent) continue;
    if (before == RankState::kAborted) return "rank " + std::to_string(r) + " has aborted the communicator";
    if (!look_at_processes || before >= RankState::kFinalized || maki::test::runs(peer.process)) continue;
    if (peer.state.load() < RankState::kFinalized) return "the process of rank " + std::to_string(r) + " has ended";
  }
  return "";
}

ncclResult_t Communicator::look_for_all() {
  if (!all_reached(RankState::kJoined)) return ncclInProgress;
  board_.close_id();
  for (int r = 0; r < ranks_; ++r) {
    for (int s = 0; s < r; ++s) {
      if (std::strcmp(board_.entry(r).bus_id, board_.entry(s).bus_id) != 0) continue;
      return fail(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(s) + " and rank " +
                                        std::to_string(r) + " both on CUDA device " + board_.entry(r).bus_id);
    }
  }
  complete_ = true;
  return ncclSuccess;
}

ncclResult_t Communicator::look() {
  if (stopped_ && error_ == ncclSuccess) fail(ncclUnhandledCudaError, "the GPU has failed");
  if (error_ != ncclSuccess) return error_;
  if (finalized_) return ncclSuccess;
  // In this order: who was lost after the start does not spoil it.
  std::string lost = lost_peer();
  if (!complete_) {
    if (const ncclResult_t state = look_for_all(); state != ncclInProgress) return state;
  }
  if (!lost.empty()) return fail(ncclRemoteError, std::move(lost));
  if (!complete_) return ncclInProgress;
  while (!waiting_.empty()) {
    if (waiting_.front().polls-- > 0) return ncclInProgress;
    submit(waiting_.front().group, waiting_.front().stream);
    waiting_.erase(waiting_.begin());
  }
  if (!finalizing_) return ncclSuccess;
  if (carried_out_ != submitted_) return ncclInProgress;
  if (board_.entry(rank_).state == RankState::kJoined) set_state(RankState::kFinalized);
  finalized_ = all_reached(RankState::kFinalized);
  return finalized_ ? ncclSuccess : ncclInProgress;
}

ncclResult_t Communicator::poll() { return told_ = look(); }

ncclResult_t Communicator::ready() {
  if (told_ == ncclSuccess && !finalizing_) return ncclSuccess;
  if (error_ != ncclSuccess) return error_;
  reason_ = finalizing_ ? "the communicator has been finalized"
                        : "Attempt to use communicator before the previous operation returned ncclSuccess";
  return ncclInvalidArgument;
}

ncclResult_t Communicator::begin(std::vector<Message> messages, cudaStream_t stream) {
  auto group = std::make_shared<MessageGroup>();
  group->messages = std::move(messages);
  group->rendezvous = choices_.below(2) == 0;
  if (choices_.below(2) == 0) {
    submit(std::move(group), stream);
    return ncclSuccess;
  }
  waiting_.push_back({std::move(group), stream, static_cast<int>(choices_.below(4))});
  return told_ = ncclInProgress;
}

void Communicator::submit(std::shared_ptr<MessageGroup> group, cudaStream_t stream) {
  group->number = submitted_++;
  const std::size_t n = group->messages.size();
  const std::shared_ptr<QueuedGroup> queued(new QueuedGroup{shared_from_this(), std::move(group), stopped_});
  queue_work(stream, "NCCL group of " + std::to_string(n) + (n == 1 ? " message" : " messages"),
             [queued](WorkNumber work) { return queued->comm->carry_out(*queued->group, work); });
}

// As NCCL's kernel does, an aborted group ends without an error of the stream's.
Progress Communicator::carry_out(MessageGroup& group, WorkNumber work) {
  if (aborted_) {
    if (group.noted) poison_rest(group);
    group.ended = true;
    return Progress::kDone;
  }
  if (carried_out_ != group.number || stopped_) return Progress::kNotYet;
  if (!group.noted && !note_buffers(group, work)) {
    stopped_ = true;
    throw Stopped{kIllegalAddress};
  }
  group.noted = true;
  if (!move_on(group, board_, rank_)) return Progress::kNotYet;
  ++carried_out_;
  group.ended = true;
  return Progress::kDone;
}

ncclResult_t Communicator::finalize() {
  if (const ncclResult_t result = ready(); result != ncclSuccess) return result;
  finalizing_ = true;
  return told_ = ncclInProgress;
}

ncclResult_t Communicator::destroy() {
  if (error_ == ncclSuccess && !finalized_) {
    report({"not modelled", "ncclCommDestroy", "of a communicator that has not been finalized by all"});
    fail(ncclInvalidUsage, "not modelled: destroyed before all have finalized");
  }
  if (error_ != ncclSuccess) {
    abort();
    return error_;
  }
  set_state(RankState::kLeft);
  return ncclSuccess;
}

void Communicator::abort() {
  aborted_ = true;
  waiting_.clear();
  // A rank that never entered (its number was taken) must not speak for the one that did.
  if (board_.entered()) set_state(finalized_ ? RankState::kLeft : RankState::kAborted);
}

}  // namespace gpu_model
