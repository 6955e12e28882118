// The model's manners: copies, arguments, orders and seeds, launches, what a fault says.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/commands.hpp"
#include "tests/gpu_model/tests/each_thread.cuh"
#include "tests/gpu_model/tests/faults.hpp"

// Faults are expected at lines counted from __LINE__ before their kernel: formatting would move them.
// clang-format off
namespace gpu_model {
namespace {

using namespace maki;

// A copy is made at the wait and not before: what its thread writes to the source in between arrives with it.
__global__ void late_copy(unsigned* word, unsigned* out) {
  unsigned* shared = dynamic_shared<unsigned>();
  if (threadIdx.x != 0) return;
  copy_async<4>(shared, word);
  commit_copies();
  *word = 5;
  wait_copies<0>();
  *out = *shared;
}

TEST(Model, CopiesLandAtTheWait) {
  const Stream stream;
  DeviceBuffer<unsigned> word("word", 1), out("out", 1);
  word.fill_zero(stream);
  launch_blocks(stream, "copy", {1, 32, 4}, late_copy, word.data(), out.data());
  EXPECT_EQ(out.download(stream)[0], 5u);
}

struct Large {
  unsigned words[40];
};

__global__ void arguments_kernel(Large large, unsigned* out) {
  unsigned local[40];
  for (unsigned i = 0; i < 40; ++i) local[i] = large.words[(i + threadIdx.x) % 40];
  out[blockIdx.x * blockDim.x + threadIdx.x] = local[threadIdx.x % 7];
}

// Arguments are copied when the kernel is launched.
TEST(Model, ArgumentsAndLocalArrays) {
  const Stream stream;
  Large large;
  for (unsigned i = 0; i < 40; ++i) large.words[i] = 100 + i;
  DeviceBuffer<unsigned> out("out", 128);
  arguments_kernel<<<2, 64, 0, native(stream)>>>(large, out.data());
  for (unsigned& word : large.words) word = 0;
  const auto result = out.download(stream);
  for (unsigned i = 0; i < 128; ++i) {
    const unsigned t = i % 64;
    ASSERT_EQ(result[i], 100 + (t % 7 + t) % 40);
  }
}

__constant__ unsigned of_module[5] = {2, 3, 5, 7, 11};
__global__ void uses_a_variable(unsigned* out) { *out = of_module[blockIdx.x]; }

TEST(Model, VariablesOfModulesAreNotModelled) {
  const Stream stream;
  DeviceBuffer<unsigned> out("out", 1);
  const auto faults = faults_of([&] { uses_a_variable<<<1, 1, 0, native(stream)>>>(out.data()); });
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, "not modelled") << to_string(faults[0]);
  EXPECT_NE(faults[0].text.find("of_module"), std::string::npos) << to_string(faults[0]);
}

// ---- orders ---------------------------------------------------------------------------------------------------------
__global__ void tickets(unsigned* next, unsigned* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1u); }

// The tickets that the threads of two blocks draw.
std::vector<unsigned> order_of_threads() {
  const Stream stream;
  DeviceBuffer<unsigned> next("next", 1), out("out", 128);
  next.fill_zero(stream);
  launch_blocks(stream, "tickets", {2, 64}, tickets, next.data(), out.data());
  return out.download(stream);
}

// Each launch draws another one: of blocks, of warps, and of the lanes that come to one word together.
TEST(Model, OrdersAreDrawn) {
  std::set<std::vector<unsigned>> orders;
  std::set<bool> first_block, first_warp, first_lane;
  for (int n = 0; n < 40; ++n) {
    const auto order = order_of_threads();
    orders.insert(order);
    first_block.insert(order[0] < order[64]);
    first_warp.insert(order[0] < order[32]);
    first_lane.insert(order[0] < order[1]);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (unsigned i = 0; i < 128; ++i) ASSERT_EQ(sorted[i], i);
  }
  EXPECT_GT(orders.size(), 10u);
  EXPECT_EQ(first_block.size(), 2u);
  EXPECT_EQ(first_warp.size(), 2u);
  EXPECT_EQ(first_lane.size(), 2u);
}

// For the next test, which starts this program.
TEST(Model, DISABLED_PrintsAnOrder) {
  std::printf("order");
  for (int n = 0; n < 3; ++n)
    for (const unsigned ticket : order_of_threads()) std::printf(" %u", ticket);
  std::printf("\n");
}

std::string order_with_seed(const std::string& seed) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const maki::test::CallResult result =
      maki::test::call_shell("MAKI_GPU_MODEL_SEED=" + seed + " '" + program +
                             "' --gtest_also_run_disabled_tests --gtest_filter=Model.DISABLED_PrintsAnOrder");
  EXPECT_EQ(result.code, 0);
  std::istringstream lines(result.output);
  std::string order;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("order")) order = line;
  EXPECT_GT(order.size(), 100u);
  return order;
}

TEST(Model, TheSameSeedGivesTheSameOrder) {
  const std::string first = order_with_seed("5");
  EXPECT_EQ(order_with_seed("5"), first);
  EXPECT_NE(order_with_seed("6"), first);
}

// Every thread waits until all have come: without turns this would not end.
__global__ void wait_for_all(unsigned* come, unsigned all) {
  atomicAdd(come, 1u);
  while (atomicAdd(come, 0u) < all) {
  }
}

TEST(Model, ThreadsThatWaitGiveWay) {
  const Stream stream;
  DeviceBuffer<unsigned> come("come", 1);
  for (const unsigned block : {32u, 128u}) {
    come.fill_zero(stream);
    launch_blocks(stream, "wait", {1, block}, wait_for_all, come.data(), block);
    EXPECT_EQ(come.download(stream)[0], block);
  }
}

using ModelDeathTest = DeathTest;

void wait_for_one_too_many() {
  const Stream stream;
  DeviceBuffer<unsigned> come("come", 1);
  come.fill_zero(stream);
  wait_for_all<<<1, 32, 0, native(stream)>>>(come.data(), 33);
  std::exit(cudaStreamSynchronize(native(stream)) == cudaSuccess ? 0 : 1);
}

TEST_F(ModelDeathTest, KernelsThatDoNotEnd) {
  setenv("MAKI_GPU_MODEL_PATIENCE", "1000000", 1);
  EXPECT_EXIT(wait_for_one_too_many(), testing::ExitedWithCode(86), "a kernel that does not end: .*wait_for_all");
  unsetenv("MAKI_GPU_MODEL_PATIENCE");
}

// ---- launches and what is said about them ---------------------------------------------------------------------------
struct Square {
  const unsigned* in;
  unsigned* out;
  MAKI_HD void operator()(std::size_t i) const { out[i] = in[i] * in[i]; }
};

using ModelledGpusDeathTest = TwoGpusDeathTest;

TEST_F(ModelledGpusDeathTest, KernelsUseMemoryOfTheirOwn) {
  EXPECT_EXIT(
      {
        const DeviceBuffer<unsigned> in("some.input", 1000);
        cudaSetDevice(1);
        const Stream stream;
        const DeviceBuffer<unsigned> out("some.output", 1000);
        launch(stream, "square", 1000, Square{in.data(), const_cast<unsigned*>(out.data())});
        std::exit(cudaStreamSynchronize(native(stream)) == cudaErrorIllegalAddress ? 0 : 1);
      },
      testing::ExitedWithCode(86), "wrong device: .* reads 4 bytes .*some.input.* of GPU 0, the kernel is on GPU 1");
}

__global__ void nothing() {}

TEST(Model, LaunchesThatNoDeviceTakes) {
  const Stream stream;
  for (const auto& [block, bytes] :
       {std::pair{1025u, std::size_t{0}}, {0u, std::size_t{0}}, {32u, std::size_t{1} << 18}}) {
    cudaError_t code = cudaSuccess;
    const auto faults = faults_of([&] {
      nothing<<<1, block, bytes, native(stream)>>>();
      code = cudaGetLastError();
    });
    EXPECT_NE(code, cudaSuccess);
    ASSERT_EQ(faults.size(), 1u) << block << " " << bytes;
    EXPECT_EQ(faults[0].kind, "launch over a limit");
  }
}

constexpr int kTooFar = __LINE__;
__global__ void too_far(unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void ends_itself(const unsigned* in) {
  if (in[threadIdx.x] == 7) __trap();
}

TEST(Model, FaultsSayEverything) {
  const Stream stream;
  DeviceBuffer<unsigned> out("some.array", 100);
  const auto faults = faults_of([&] { too_far<<<2, 64, 0, native(stream)>>>(out.data()); });
  ASSERT_EQ(faults.size(), 1u);
  const std::string text = to_string(faults[0]);
  for (const std::string& part : {std::string("too_far"), std::string("block (1,0,0)"), std::string("thread (36,0,0)"),
                                  std::string("out of bounds"), std::string("writes 4 bytes"), std::string("some.array"),
                                  std::string("400 bytes"), "tests/gpu_model/tests/model_test.cu:" + std::to_string(kTooFar + 2)})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  DeviceBuffer<unsigned> in("in");
  in.upload(stream, std::vector<unsigned>{1, 7});
  const auto traps = faults_of([&] { ends_itself<<<1, 2, 0, native(stream)>>>(in.data()); });
  ASSERT_EQ(traps.size(), 1u);
  EXPECT_EQ(traps[0].kind, "a trap") << to_string(traps[0]);
  EXPECT_NE(traps[0].where.find("thread (1,0,0)"), std::string::npos) << to_string(traps[0]);
}

}  // namespace
}  // namespace gpu_model
