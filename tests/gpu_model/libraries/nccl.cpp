// NCCL's functions for messages between two ranks, those that Maki calls.
#include <nccl.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/gpu_model/libraries/nccl_communicator.hpp"

namespace gpu_model {
namespace {

struct Communicators {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> all;
  std::uintptr_t last = 0;
  std::string last_error;
};
Communicators& communicators() {
  static Communicators* const all = new Communicators;  // never destroyed: static objects may use theirs at the end
  return *all;
}

ncclResult_t failed(ncclResult_t code, const std::string& reason) {
  auto& table = communicators();
  const std::lock_guard lock(table.mutex);
  table.last_error = reason;
  return code;
}
// Keeps the reason where `code` is an error of the communicator's.
ncclResult_t told(const Communicator& comm, ncclResult_t code) {
  return code == ncclSuccess || code == ncclInProgress ? code : failed(code, comm.reason());
}

// Handles are numbers that are never used again, so a communicator that is gone is known as such.
ncclComm_t add(std::shared_ptr<Communicator> comm) {
  auto& table = communicators();
  const std::lock_guard lock(table.mutex);
  const auto handle = reinterpret_cast<ncclComm_t>(table.last += 16);
  table.all.emplace(handle, std::move(comm));
  return handle;
}
std::shared_ptr<Communicator> find(ncclComm_t handle, const char* call) {
  auto& table = communicators();
  const std::lock_guard lock(table.mutex);
  const auto found = table.all.find(handle);
  if (found != table.all.end()) return found->second;
  table.last_error = std::string(call) + " : this is no communicator";
  if (reinterpret_cast<std::uintptr_t>(handle) - 1 < table.last)
    report({"NCCL use", call, "the communicator has been destroyed or aborted"});
  return nullptr;
}
void remove(ncclComm_t handle) {
  auto& table = communicators();
  const std::lock_guard lock(table.mutex);
  table.all.erase(handle);
}

// A thread's group: between ncclGroupStart and the ncclGroupEnd that belongs to it.
struct OpenGroup {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::shared_ptr<Communicator> comm;  // of all its messages
  cudaStream_t stream = nullptr;
  std::vector<Message> messages;
};
thread_local OpenGroup open_group;

ncclResult_t end_group() {
  if (open_group.depth == 0) return failed(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--open_group.depth > 0) return ncclSuccess;
  const auto group = std::exchange(open_group, {});
  return group.error != ncclSuccess || !group.comm ? group.error : group.comm->begin(group.messages, group.stream);
}

ncclResult_t add_to_group(ncclComm_t handle, const Message& message, cudaStream_t stream, const char* call) {
  const auto comm = find(handle, call);
  if (!comm) return ncclInvalidArgument;
  if (const ncclResult_t result = comm->ready(); result != ncclSuccess) return told(*comm, result);
  if (message.peer < 0 || message.peer >= comm->ranks() || (message.bytes > 0 && message.address == 0))
    return failed(ncclInvalidArgument, std::string(call) + " : invalid peer or buffer");
  if (!open_group.comm) open_group.comm = comm, open_group.stream = stream;
  if (open_group.comm != comm || open_group.stream != stream) {
    report({"not modelled", call, "a group with messages of several communicators or on several streams"});
    return failed(ncclInvalidUsage, "not modelled: a group of several communicators or streams");
  }
  open_group.messages.push_back(message);
  return ncclSuccess;
}

ncclResult_t message(ncclComm_t handle, const Message& message, ncclDataType_t type, cudaStream_t stream,
                     const char* call) {
  ncclResult_t result = ncclInvalidUsage;
  if (type != ncclChar || open_group.depth == 0) {
    report({"not modelled", call, type != ncclChar ? "numbers other than bytes" : "outside a group"});
    failed(result, "not modelled: messages outside a group, or not of bytes");
  } else {
    result = add_to_group(handle, message, stream, call);
  }
  if (result != ncclSuccess && open_group.error == ncclSuccess) open_group.error = result;
  return result;
}

ncclResult_t make_communicator(ncclComm_t* handle, int ranks, const ncclUniqueId& id, int rank) {
  if (!handle) return failed(ncclInvalidArgument, "ncclCommInitRank : comm argument is NULL");
  *handle = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return failed(ncclInvalidArgument,
                  "Invalid rank requested : " + std::to_string(rank) + "/" + std::to_string(ranks));
  if (open_group.depth > 0 || ranks > kMostRanks) {
    report({"not modelled", "ncclCommInitRankConfig", "in a group, or with more than 256 ranks"});
    return failed(ncclInvalidUsage, "not modelled: ncclCommInitRankConfig in a group, or with more than 256 ranks");
  }
  int device = 0;
  char bus_id[32] = "";
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device) != cudaSuccess)
    return failed(ncclUnhandledCudaError, "there is no GPU");
  const auto comm = std::make_shared<Communicator>(ranks, rank);
  const ncclResult_t result = comm->enter(id, bus_id);
  if (result != ncclSuccess && result != ncclInProgress) {
    comm->abort();
    return told(*comm, result);
  }
  *handle = add(comm);
  return result;
}

}  // namespace
}  // namespace gpu_model

using gpu_model::failed, gpu_model::find, gpu_model::open_group, gpu_model::told;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!id) return ncclInvalidArgument;
  const ncclResult_t result = gpu_model::make_unique_id(*id);
  return result == ncclSuccess ? result : failed(result, "no memory to share (memfd_create)");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config && (config->magic != (ncclConfig_t NCCL_CONFIG_INITIALIZER).magic || config->size != sizeof(ncclConfig_t)))
    return failed(ncclInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  if (!config || config->blocking != 0) {
    gpu_model::report({"not modelled", "ncclCommInitRankConfig", "a communicator that blocks"});
    return failed(ncclInvalidUsage, "not modelled: a communicator that blocks");
  }
  return gpu_model::make_communicator(comm, ranks, id, rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  const auto comm = find(handle, "ncclCommGetAsyncError");
  if (!comm || !state) return ncclInvalidArgument;
  *state = told(*comm, comm->poll());
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const auto comm = find(handle, "ncclCommFinalize");
  return comm ? told(*comm, comm->finalize()) : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  const auto comm = find(handle, "ncclCommDestroy");
  if (!comm) return ncclInvalidArgument;
  const ncclResult_t result = comm->destroy();
  gpu_model::remove(handle);
  return told(*comm, result);
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  const auto comm = find(handle, "ncclCommAbort");
  if (!comm) return ncclInvalidArgument;
  comm->abort();
  gpu_model::remove(handle);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++open_group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return gpu_model::end_group(); }

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const auto address = reinterpret_cast<gpu_model::Address>(from);
  return gpu_model::message(comm, {true, peer, address, count}, type, stream, "ncclSend");
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const auto address = reinterpret_cast<gpu_model::Address>(to);
  return gpu_model::message(comm, {false, peer, address, count}, type, stream, "ncclRecv");
}

const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  thread_local std::string text;
  auto& table = gpu_model::communicators();
  const std::lock_guard lock(table.mutex);
  text = table.last_error;
  return text.c_str();
}

}  // extern "C"
