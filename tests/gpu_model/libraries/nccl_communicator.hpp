// A rank's side of a modelled NCCL communicator between processes of one machine.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu_model/choices.hpp"
#include "tests/gpu_model/libraries/nccl_messages.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

namespace gpu_model {

// Calls are made by one thread at a time. Groups are carried out by whichever thread moves the streams on.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(int ranks, int rank);

  ncclResult_t enter(const ncclUniqueId& id, const char* bus_id);
  // What the program is told: ncclInProgress until what it began is done. Moves that on.
  ncclResult_t poll();
  ncclResult_t ready();  // whether a call may be made now
  // Puts a group on the stream: now, or when poll() is called the next time or later.
  ncclResult_t begin(std::vector<Message> messages, cudaStream_t stream);
  ncclResult_t finalize();
  ncclResult_t destroy();
  void abort();  // groups on streams end without having done their work
  Progress carry_out(MessageGroup& group, WorkNumber work);

  int ranks() const { return ranks_; }
  const std::string& reason() const { return reason_; }  // of the last failure

 private:
  struct Waiting {
    std::shared_ptr<MessageGroup> group;
    cudaStream_t stream = nullptr;
    int polls = 0;
  };
  ncclResult_t look();
  ncclResult_t look_for_all();
  bool all_reached(RankState state) const;
  std::string lost_peer();
  ncclResult_t fail(ncclResult_t error, std::string reason);
  void submit(std::shared_ptr<MessageGroup> group, cudaStream_t stream);
  void set_state(RankState state) { board_.entry(rank_).state = state; }

  const int ranks_, rank_;
  SharedBoard board_;
  Choices choices_;
  bool complete_ = false, finalizing_ = false, finalized_ = false;
  ncclResult_t told_ = ncclInProgress, error_ = ncclSuccess;
  std::string reason_;
  std::vector<Waiting> waiting_;
  std::chrono::steady_clock::time_point next_look_{};
  unsigned submitted_ = 0;
  std::atomic<unsigned> carried_out_{0};  // groups of one communicator are carried out in the order of the calls
  std::atomic<bool> aborted_{false};
  std::atomic<bool> stopped_{false};  // a group will never be carried out
};

}  // namespace gpu_model
