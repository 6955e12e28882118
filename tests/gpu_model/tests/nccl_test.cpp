// The modelled NCCL between processes: a test that needs ranks starts its program again, once for each of them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/commands.hpp"
#include "tests/gpu_model/runtime/streams.hpp"
#include "tests/gpu_model/tests/device_memory.hpp"
#include "tests/gpu_model/tests/faults.hpp"
#include "tests/temp_dir.hpp"

namespace gpu_model {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

// This process as a rank of the test; of the first process, which only starts the others, -1.
int rank() {
  const std::string text = variable("NCCL_TEST_RANK");
  return text.empty() ? -1 : std::stoi(text);
}

ncclUniqueId unique_id() {
  ncclUniqueId id;
  const std::string hex = variable("NCCL_TEST_ID");
  for (std::size_t i = 0; i < sizeof id; ++i)
    id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return id;
}

// Runs the present test in `ranks` processes that see `devices` GPUs, rank r with the r-th seed from `seed` on.
void run_ranks(int ranks, int devices, int seed = 1) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::string hex;
  for (const char c : id.internal) {
    const char* const digits = "0123456789abcdef";
    hex += digits[static_cast<unsigned char>(c) / 16];
    hex += digits[static_cast<unsigned char>(c) % 16];
  }
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const maki::test::TempDir files;
  std::list<maki::test::StartedCommand> started;
  for (int r = 0; r < ranks; ++r)
    started.emplace_back("NCCL_TEST_RANK=" + std::to_string(r) + " NCCL_TEST_ID=" + hex + " NCCL_TEST_FILES='" +
                             files.path() + "' MAKI_GPU_MODEL_DEVICES=" + std::to_string(devices) +
                             " MAKI_GPU_MODEL_SEED=" + std::to_string(seed + r) + " '" + program +
                             "' --gtest_brief=1 --gtest_filter=" + test->test_suite_name() + "." + test->name(),
                         files / std::to_string(r));
  for (auto& process : started) {
    const maki::test::CallResult result = process.wait(300);
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

bool until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
}

// A word from one rank to others without a communicator: a file.
std::string word_of(int rank) { return variable("NCCL_TEST_FILES") + "/word_of_" + std::to_string(rank); }
void tell() { std::ofstream{word_of(rank())}; }
void hear_from(const std::vector<int>& ranks) {
  for (const int r : ranks) EXPECT_TRUE(until([&] { return std::filesystem::exists(word_of(r)); })) << "rank " << r;
}

using Bytes = OnDevice<unsigned char>;

// A rank's communicator, by calls that do not block, and its stream.
struct Rank {
  explicit Rank(int ranks) {
    int devices = 0;
    EXPECT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(rank() % devices), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclUniqueId id = unique_id();
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, ranks, id, rank(), &config);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess);
  }
  ncclResult_t state() const {
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    return state;
  }
  ncclResult_t settled() const {
    ncclResult_t last = ncclInProgress;
    EXPECT_TRUE(until([&] { return (last = state()) != ncclInProgress; }));
    return last;
  }
  // The error that comes.
  ncclResult_t failed() const {
    ncclResult_t last = ncclSuccess;
    EXPECT_TRUE(until([&] { return (last = state()) != ncclSuccess && last != ncclInProgress; }));
    return last;
  }
  void leave() {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const ncclResult_t begun = ncclCommFinalize(comm);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess);
    EXPECT_EQ(settled(), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  bool idle() const {
    const Lock lock;
    return find_stream(stream)->queue.empty();
  }
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  // Groups of one message.
  ncclResult_t send(const void* from, std::size_t bytes, int peer) const {
    ncclGroupStart();
    const ncclResult_t sent = ncclSend(from, bytes, ncclChar, peer, comm, stream), end = ncclGroupEnd();
    return sent == ncclSuccess ? end : sent;
  }
  ncclResult_t receive(void* to, std::size_t bytes, int peer) const {
    ncclGroupStart();
    const ncclResult_t received = ncclRecv(to, bytes, ncclChar, peer, comm, stream), end = ncclGroupEnd();
    return received == ncclSuccess ? end : received;
  }
};

std::vector<unsigned char> pattern(int from, int to, int round, std::size_t n) {
  std::vector<unsigned char> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<unsigned char>(i * 7 + i / 251 + static_cast<unsigned>(from * 31 + to * 5 + round));
  return v;
}

// In some rounds much more than the rings hold goes both ways at once.
TEST(ModelledNccl, AllToAllInManyRounds) {
  constexpr int kRanks = 3, kRounds = 12;
  if (rank() < 0) {
    for (const int seed : {1, 7}) run_ranks(kRanks, kRanks, seed);
    return;
  }
  Rank me(kRanks);
  ASSERT_EQ(me.settled(), ncclSuccess);
  const auto length = [](int from, int to, int round) {
    return std::size_t(from * 7 + to * 5 + round * 3) % 5 * (round % 4 == 3 ? 300'000 : 1000);
  };
  int late = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Bytes>> out, in;
    for (int peer = 0; peer < kRanks; ++peer) {
      out.push_back(std::make_unique<Bytes>(pattern(rank(), peer, round, length(rank(), peer, round))));
      in.push_back(std::make_unique<Bytes>(length(peer, rank(), round)));
    }
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int peer = 0; peer < kRanks; ++peer) {
      // Each message in two parts, which keep their order.
      const std::size_t a = in[peer]->size() / 3, b = out[peer]->size() / 3;
      unsigned char *const to = in[peer]->data(), *const from = out[peer]->data();
      ASSERT_EQ(ncclRecv(to, a, ncclChar, peer, me.comm, me.stream), ncclSuccess);
      ASSERT_EQ(ncclRecv(to + a, in[peer]->size() - a, ncclChar, peer, me.comm, me.stream), ncclSuccess);
      ASSERT_EQ(ncclSend(from, b, ncclChar, peer, me.comm, me.stream), ncclSuccess);
      ASSERT_EQ(ncclSend(from + b, out[peer]->size() - b, ncclChar, peer, me.comm, me.stream), ncclSuccess);
    }
    const ncclResult_t end = ncclGroupEnd();
    if (end == ncclInProgress) {
      ++late;
      EXPECT_TRUE(me.idle()) << "nothing is on the stream yet";
      EXPECT_EQ(me.send(out[0]->data(), 1, 0), ncclInvalidArgument) << "too early";
    } else {
      ASSERT_EQ(end, ncclSuccess);
    }
    ASSERT_EQ(me.settled(), ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
    for (int peer = 0; peer < kRanks; ++peer)
      EXPECT_EQ(in[peer]->get(), pattern(peer, rank(), round, in[peer]->size())) << "from " << peer;
  }
  EXPECT_GT(late, 0);
  EXPECT_LT(late, kRounds);
  me.leave();
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(me.comm, &state), ncclInvalidArgument);
  EXPECT_EQ(kinds_of_faults(), Kinds{"NCCL use"}) << "destroyed";
}

TEST(ModelledNccl, SizesThatDifferAreAFault) {
  if (rank() < 0) return run_ranks(2, 2);
  Rank me(2);
  ASSERT_EQ(me.settled(), ncclSuccess);
  Bytes buffer(std::vector<unsigned char>(100, static_cast<unsigned char>(rank())));
  if (rank() == 0)
    me.send(buffer.data(), 60, 1);
  else
    me.receive(buffer.data(), 100, 0);
  ASSERT_EQ(me.settled(), ncclSuccess);
  me.leave();
  EXPECT_EQ(kinds_of_faults(), rank() == 0 ? Kinds{} : Kinds{"NCCL message"});
  if (rank() == 1) {
    EXPECT_EQ(buffer.get()[59], 0);
    EXPECT_EQ(buffer.get()[60], 0xff) << "has not come";
  }
}

TEST(ModelledNccl, BuffersOfAGroupThatOverlapAreAFault) {
  if (rank() < 0) return run_ranks(1, 1);
  Rank me(1);
  ASSERT_EQ(me.settled(), ncclSuccess);
  Bytes buffer(100);
  ncclGroupStart();
  ncclSend(buffer.data(), 60, ncclChar, 0, me.comm, me.stream);
  ncclRecv(buffer.data() + 59, 60 - 20, ncclChar, 0, me.comm, me.stream);
  ncclGroupEnd();
  ASSERT_EQ(me.settled(), ncclSuccess);
  me.leave();
  EXPECT_EQ(kinds_of_faults(), (Kinds{"NCCL message", "NCCL message"})) << "overlap, and sizes";
}

TEST(ModelledNccl, BufferThatIsTooShortStopsTheGpu) {
  if (rank() < 0) return run_ranks(1, 1);
  Rank me(1);
  ASSERT_EQ(me.settled(), ncclSuccess);
  Bytes buffer(1000), other(4000);
  // The second one is never carried out. The GPU may fail before it, or later: work that nobody waits for moves too.
  for (int twice = 0; twice < 2; ++twice) {
    ncclGroupStart();
    ncclRecv(buffer.data(), 4000, ncclChar, 0, me.comm, me.stream);
    ncclSend(other.data(), 4000, ncclChar, 0, me.comm, me.stream);
    ncclGroupEnd();
    const ncclResult_t settled = me.settled();
    ASSERT_TRUE(settled == ncclSuccess || settled == ncclUnhandledCudaError) << settled;
  }
  EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaErrorIllegalAddress);
  EXPECT_EQ(kinds_of_faults(), Kinds{"out of bounds"});
  EXPECT_EQ(me.state(), ncclUnhandledCudaError);
  EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
}

TEST(ModelledNccl, AbortEndsWhatWaitsAndPeersLearnOfIt) {
  if (rank() < 0) return run_ranks(2, 2);
  Rank me(2);
  ASSERT_EQ(me.settled(), ncclSuccess);
  Bytes buffer(1'000'000);
  if (rank() == 1) {
    hear_from({0});
  } else {
    me.receive(buffer.data(), buffer.size(), 1);
    EXPECT_EQ(me.settled(), ncclSuccess) << "on the stream";
    tell();
    EXPECT_EQ(me.failed(), ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(me.comm)).find("rank 1"), std::string::npos);
    EXPECT_FALSE(me.idle()) << "still waiting";
  }
  EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(me.stream), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledNccl, ProcessThatEndedIsARemoteError) {
  if (rank() < 0) return run_ranks(3, 3);
  Rank me(3);
  ASSERT_EQ(me.settled(), ncclSuccess);
  if (rank() == 1) {
    hear_from({0, 2});
    _exit(HasFailure() ? 1 : 0);
  }
  tell();
  EXPECT_EQ(me.failed(), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
}

TEST(ModelledNccl, RanksNeedGpusOfTheirOwn) {
  if (rank() < 0) return run_ranks(3, 2);
  Rank me(3);
  EXPECT_EQ(me.settled(), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(me.comm)).find("Duplicate GPU"), std::string::npos);
  EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
}

// Rank 1 enters late.
TEST(ModelledNccl, StartIsInProgressUntilAllAreThere) {
  if (rank() < 0) return run_ranks(2, 2);
  if (rank() == 1) hear_from({0});
  Rank me(2);
  Bytes buffer(8);
  if (rank() == 0) {
    EXPECT_EQ(me.state(), ncclInProgress);
    EXPECT_EQ(me.send(buffer.data(), 8, 1), ncclInvalidArgument);
    tell();
  }
  ASSERT_EQ(me.settled(), ncclSuccess);
  EXPECT_EQ(me.send(buffer.data(), 8, 2), ncclInvalidArgument) << "no such rank";
  EXPECT_EQ(ncclSend(buffer.data(), 8, ncclChar, 1, me.comm, me.stream), ncclInvalidUsage) << "outside a group";
  EXPECT_EQ(ncclRecv(buffer.data(), 2, ncclFloat, 1, me.comm, me.stream), ncclInvalidUsage) << "not of bytes";
  EXPECT_EQ(kinds_of_faults(), (Kinds{"not modelled", "not modelled"}));
  me.leave();
}

TEST(ModelledNccl, ErrorsAndVersion) {
  if (rank() >= 0) return;
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(std::string(ncclGetErrorString(ncclRemoteError)), "remote process exited or there was a network error");
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, ncclUniqueId{}, 0, &config), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)), "");
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 2, &config), ncclInvalidArgument);
  config = {};
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
}

}  // namespace
}  // namespace gpu_model
