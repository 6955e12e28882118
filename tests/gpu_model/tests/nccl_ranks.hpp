// Ranks for tests of the modelled NCCL: a test that needs some starts its program again, once for each of them.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "tests/commands.hpp"
#include "tests/gpu_model/tests/device_memory.hpp"
#include "tests/gpu_model/tests/faults.hpp"
#include "tests/temp_dir.hpp"

namespace gpu_model::nccl_test {

inline std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

// This process as a rank of the test; of the first process, which only starts the others, -1.
inline int rank() {
  const std::string text = variable("NCCL_TEST_RANK");
  return text.empty() ? -1 : std::stoi(text);
}

inline ncclUniqueId unique_id() {
  ncclUniqueId id;
  const std::string hex = variable("NCCL_TEST_ID");
  for (std::size_t i = 0; i < sizeof id; ++i)
    id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return id;
}

// Runs the present test in `ranks` processes that see `devices` GPUs, rank r with the r-th seed from `seed` on.
inline void run_ranks(int ranks, int devices, int seed = 1) {
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

inline bool until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
}

// A word from one rank to others without a communicator: a file.
inline std::string word_of(int rank) { return variable("NCCL_TEST_FILES") + "/word_of_" + std::to_string(rank); }
inline void tell() { std::ofstream{word_of(rank())}; }
inline void hear_from(const std::vector<int>& ranks) {
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

inline std::vector<unsigned char> pattern(int from, int to, int round, std::size_t n) {
  std::vector<unsigned char> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<unsigned char>(i * 7 + i / 251 + static_cast<unsigned>(from * 31 + to * 5 + round));
  return v;
}

}  // namespace gpu_model::nccl_test
