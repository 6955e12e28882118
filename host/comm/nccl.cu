#include "host/comm/payload_transfer.hpp"

#include "host/comm/job.hpp"
#include "kernels/error.hpp"

#if defined(MAKI_NCCL)

#include "kernels/device/launch.cuh"

#include <nccl.h>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "kernels/device/stream.hpp"

namespace maki {

using Look = Communicator::Look;

// NCCL's calls do not block, since a lost peer must not block this rank. Their completion is polled.
class NcclRanks {
 public:
  explicit NcclRanks(const Communicator& ranks);
  ~NcclRanks();

  // Throws Error unless the call succeeded or is under way.
  void check(ncclResult_t code, const char* what) const {
    if (code == ncclSuccess || code == ncclInProgress) return;
    throw Error(std::string(what) + " failed",
                std::string("NCCL: ") + ncclGetErrorString(code) + "; " + ncclGetLastError(comm_),
                "NCCL_DEBUG=INFO says more; MAKI_PAYLOAD=staged goes without NCCL");
  }
  // Whether all calls are complete; throws Error where one failed.
  bool settled() const {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "asking NCCL for errors");
    check(state, "an exchange between GPUs");
    return state != ncclInProgress;
  }
  void settle(const Communicator& ranks, const char* what) const {
    ranks.wait(
        what, [this] { return settled() ? Look::kDone : Look::kNothing; }, [] { return std::vector<int>{}; });
  }
  // Aborts pending work, so that the GPU is free again; nothing can be exchanged afterwards.
  void abort() noexcept;
  ncclComm_t comm() const { return comm_; }

 private:
  ncclComm_t comm_ = nullptr;
};

NcclRanks::NcclRanks(const Communicator& ranks) {
  ncclUniqueId id{};
  if (ranks.rank() == 0) check(ncclGetUniqueId(&id), "starting NCCL");
  ranks.broadcast(&id, sizeof id, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  try {
    check(ncclCommInitRankConfig(&comm_, ranks.size(), id, ranks.rank(), &config), "starting NCCL");
    settle(ranks, "starting NCCL");
  } catch (...) {
    abort();
    throw;
  }
}

constexpr std::chrono::seconds kLongest{5};

// In some releases ncclCommAbort() frees the GPU at once, but then waits for other ranks to abort too (NCCL's issue
// 863). They do not, while this rank has not told its error: so another thread waits.
void NcclRanks::abort() noexcept {
  if (!comm_) return;
  try {
    auto ended = std::make_shared<std::promise<void>>();
    const std::future<void> end = ended->get_future();
    std::thread([comm = comm_, ended] {
      ncclCommAbort(comm);
      ended->set_value();
    }).detach();
    end.wait_for(kLongest);
  } catch (const std::exception&) {  // no thread: the end of the process frees the GPU
  }
  comm_ = nullptr;
}

// Others may still be reading the last messages; but ranks that end by an error wait for nobody.
NcclRanks::~NcclRanks() {
  if (!comm_) return;
  ncclResult_t state = std::uncaught_exceptions() > 0 ? ncclRemoteError : ncclCommFinalize(comm_);
  for (const auto end = std::chrono::steady_clock::now() + kLongest;
       state == ncclInProgress && std::chrono::steady_clock::now() < end;) {
    if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) state = ncclSystemError;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (state == ncclSuccess) {
    ncclCommDestroy(comm_);
  } else {
    abort();
  }
}

namespace {

// Never destroyed: the driver may end before static objects.
const Stream& exchange_stream() {
  static const Stream* const stream = new Stream;
  return *stream;
}

class NcclTransfer final : public PayloadTransfer {
 public:
  NcclTransfer(const Communicator& ranks, std::shared_ptr<NcclRanks> nccl, const Stream& stream,
               PayloadMessages messages);
  ~NcclTransfer() override {
    if (!done_) nccl_->abort();  // cancelled: the kernel would wait for ever
  }

  Look look() override {
    if (done_) return Look::kDone;
    if (!nccl_->comm()) throw Error("an exchange between GPUs failed", "another one under way was given up");
    if (!nccl_->settled()) return Look::kNothing;
    if (!queued_) {  // only now the group is in the stream
      after_.set(exchange_stream());
      queued_ = true;
      return Look::kMoved;
    }
    done_ = after_.reached();
    return done_ ? Look::kDone : Look::kNothing;
  }
  bool follow(const Stream& stream) override {
    if (queued_) after_.hold_back(stream);
    return queued_;
  }
  bool needs_host() const override { return !queued_; }
  std::vector<int> pending() const override { return {peers_.begin(), peers_.end()}; }

 private:
  std::shared_ptr<NcclRanks> nccl_;
  std::set<int> peers_;
  StreamMark after_;
  bool queued_ = false, done_ = false;
};

NcclTransfer::NcclTransfer(const Communicator& ranks, std::shared_ptr<NcclRanks> nccl, const Stream& stream,
                           PayloadMessages messages)
    : nccl_(std::move(nccl)) {
  if (!nccl_->comm()) throw Error("no exchange between GPUs", "an earlier one was given up");
  nccl_->settle(ranks, "an exchange between GPUs");
  exchange_stream().wait_for(stream);
  const cudaStream_t queue = native(exchange_stream());
  nccl_->check(ncclGroupStart(), "a group of messages");
  for (const auto& message : messages.in) {
    nccl_->check(ncclRecv(message.data, message.bytes, ncclChar, message.from, nccl_->comm(), queue), "receiving");
    peers_.insert(message.from);
  }
  for (const auto& message : messages.out) {
    nccl_->check(ncclSend(message.data, message.bytes, ncclChar, message.to, nccl_->comm(), queue), "sending");
    peers_.insert(message.to);
  }
  nccl_->check(ncclGroupEnd(), "a group of messages");
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::shared_ptr<NcclRanks> start_nccl(const Communicator& ranks) { return std::make_shared<NcclRanks>(ranks); }

std::unique_ptr<PayloadTransfer> begin_nccl(const Communicator& ranks, std::shared_ptr<NcclRanks> nccl,
                                            const Stream& stream, PayloadMessages messages) {
  return std::make_unique<NcclTransfer>(ranks, std::move(nccl), stream, std::move(messages));
}

}  // namespace maki

#else

namespace maki {
namespace {
[[noreturn]] void refuse() { throw Error("no exchange by NCCL", "this build of Maki is without it"); }
}  // namespace

std::string nccl_version() { return ""; }
std::shared_ptr<NcclRanks> start_nccl(const Communicator&) { refuse(); }
std::unique_ptr<PayloadTransfer> begin_nccl(const Communicator&, std::shared_ptr<NcclRanks>, const Stream&,
                                            PayloadMessages) {
  refuse();
}

}  // namespace maki

#endif
