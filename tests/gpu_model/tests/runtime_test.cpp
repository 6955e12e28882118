// The modelled CUDA runtime: streams, events, copies, and the faults that it reports.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/streams.hpp"
#include "tests/gpu_model/tests/device_memory.hpp"
#include "tests/gpu_model/tests/faults.hpp"

namespace gpu_model {
namespace {

struct TestEvent {
  cudaEvent_t handle = nullptr;
  TestEvent() { EXPECT_EQ(cudaEventCreate(&handle), cudaSuccess); }
  ~TestEvent() { cudaEventDestroy(handle); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  void record(const TestStream& s) const { EXPECT_EQ(cudaEventRecord(handle, s.handle), cudaSuccess); }
};

using Numbers = OnDevice<int>;

cudaError_t to_device(const Numbers& to, const int* from, std::size_t n, const TestStream& s) {
  return cudaMemcpyAsync(to.data(), from, n * sizeof(int), cudaMemcpyHostToDevice, s.handle);
}
cudaError_t to_host(int* to, const Numbers& from, std::size_t n, const TestStream& s) {
  return cudaMemcpyAsync(to, from.data(), n * sizeof(int), cudaMemcpyDeviceToHost, s.handle);
}

// Work that writes down when it is carried out.
void note(std::vector<int>& order, int number, const TestStream& s) {
  queue_work(s.handle, "note", [&order, number](WorkNumber) {
    order.push_back(number);
    return Progress::kDone;
  });
}

TEST(ModelledRuntime, WorkWaitsUntilItIsWaitedFor) {
  const TestStream s;
  std::vector<int> order;
  note(order, 1, s);
  note(order, 2, s);
  EXPECT_TRUE(order.empty());
  const auto waits = host_waits.load();
  s.wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
  s.wait();
  EXPECT_EQ(host_waits, waits + 1);
}

TEST(ModelledRuntime, EventsOrderStreamsAndNothingElseDoes) {
  bool early = false, late = false;  // the work that nobody waits for
  for (int n = 0; n < 200; ++n) {
    const TestStream a, b;
    const TestEvent event;
    std::vector<int> order;
    note(order, 1, a);
    event.record(a);
    note(order, 2, a);
    EXPECT_EQ(cudaStreamWaitEvent(b.handle, event.handle, 0), cudaSuccess);
    note(order, 3, b);
    b.wait();
    early |= order.size() == 3;
    late |= order == std::vector{1, 3};
    std::erase(order, 2);
    EXPECT_EQ(order, (std::vector{1, 3}));
    a.wait();
  }
  const char* order = std::getenv("MAKI_GPU_MODEL_ORDER");
  EXPECT_TRUE(late);
  EXPECT_NE(early, order && std::string(order) == "late");
}

TEST(ModelledRuntime, PollingEnds) {
  const TestStream a;
  const TestEvent event;
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) note(order, i, a);
  event.record(a);
  int asked = 1;
  while (cudaEventQuery(event.handle) == cudaErrorNotReady) ++asked;
  EXPECT_EQ(order.size(), 20u);
  EXPECT_GT(asked, 5);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST(ModelledRuntime, WorkThatCannotGoOnIsAskedAgain) {
  const TestStream a, b;
  int asked = 0;
  queue_work(a.handle, "message", [&](WorkNumber) { return ++asked < 5 ? Progress::kNotYet : Progress::kDone; });
  std::vector<int> order;
  note(order, 1, b);
  a.wait();
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(order.size(), 1u);  // it was tried meanwhile
}

TEST(ModelledRuntime, TimeGoesOnWithWork) {
  const TestStream s;
  const TestEvent begin, end;
  std::vector<int> order;
  begin.record(s);
  note(order, 1, s);
  end.record(s);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin.handle, end.handle), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end.handle), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin.handle, end.handle), cudaSuccess);
  EXPECT_GT(ms, 0);
  cudaGetLastError();
}

TEST(ModelledRuntime, SourceChangedBeforeItsCopy) {
  const TestStream s;
  const Numbers device(8), locked(8, true);
  std::vector<int> pageable(8, 1);
  EXPECT_EQ(to_device(device, pageable.data(), 8, s), cudaSuccess);
  pageable[3] = 2;
  s.wait();
  EXPECT_EQ(kinds_of_faults(), Kinds{"host memory overwritten before its copy was done"});
  EXPECT_EQ(to_device(device, locked.data(), 8, s), cudaSuccess);
  locked.data()[3] = 2;
  s.wait();
  EXPECT_EQ(kinds_of_faults(), Kinds{"host memory overwritten before its copy was done"});
  EXPECT_EQ(to_device(device, locked.data(), 8, s), cudaSuccess);
  s.wait();
  locked.data()[3] = 3;
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledRuntime, TargetUsedBeforeItsCopy) {
  const TestStream s, other;
  const Numbers device(4), locked(8, true);
  const std::vector<int> in{1, 2, 3, 4};
  EXPECT_EQ(to_device(device, in.data(), 4, s), cudaSuccess);
  locked.data()[5] = 7;
  EXPECT_EQ(to_host(locked.data(), device, 4, s), cudaSuccess);
  EXPECT_EQ(locked.data()[5], 7);  // not of the copy
  locked.data()[6] = 8;
  other.wait();
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  const int early = static_cast<volatile int*>(locked.data())[1];
  EXPECT_TRUE(early == -1 || early == 2);
  EXPECT_EQ(kinds_of_faults(), Kinds{"host memory read before its copy was done"});
  EXPECT_EQ(to_host(locked.data(), device, 4, s), cudaSuccess);
  locked.data()[2] = 9;
  EXPECT_EQ(kinds_of_faults(), Kinds{"host memory written before its copy was done"});
  EXPECT_EQ(to_host(locked.data(), device, 4, s), cudaSuccess);
  s.wait();
  EXPECT_EQ(std::vector(locked.data(), locked.data() + 4), in);
  EXPECT_EQ(locked.data()[6], 8);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledRuntime, CopiesThroughPageLockedMemoryFollowEachOther) {
  const TestStream s;
  const Numbers a(4), b(4), locked(4, true);
  const std::vector<int> in{1, 2, 3, 4};
  std::vector<int> out(4);
  EXPECT_EQ(to_device(a, in.data(), 4, s), cudaSuccess);
  EXPECT_EQ(to_host(locked.data(), a, 4, s), cudaSuccess);
  EXPECT_EQ(to_device(b, locked.data(), 4, s), cudaSuccess);
  EXPECT_EQ(to_host(out.data(), b, 4, s), cudaSuccess);  // returns when it is done: `out` is pageable
  EXPECT_EQ(out, in);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
}

TEST(ModelledRuntime, RacesBetweenStreams) {
  const TestStream a, b;
  const TestEvent event;
  const Numbers device(16);
  std::vector<int> out(16);
  EXPECT_EQ(cudaMemsetAsync(device.data(), 0, 64, a.handle), cudaSuccess);
  EXPECT_EQ(to_host(out.data(), device, 16, b), cudaSuccess);
  a.wait();
  EXPECT_EQ(kinds_of_faults(), Kinds{"a race between streams"});
  EXPECT_EQ(cudaMemsetAsync(device.data(), 1, 64, a.handle), cudaSuccess);
  event.record(a);
  EXPECT_EQ(cudaStreamWaitEvent(b.handle, event.handle, 0), cudaSuccess);
  EXPECT_EQ(to_host(out.data(), device, 16, b), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  EXPECT_EQ(out, std::vector<int>(16, 0x01010101));
}

TEST(ModelledRuntime, EventsThatWereNeverRecorded) {
  const TestStream s;
  const TestEvent event, other;
  EXPECT_EQ(cudaEventQuery(event.handle), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{});
  EXPECT_EQ(cudaStreamWaitEvent(s.handle, event.handle, 0), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{"event never recorded"});
  EXPECT_EQ(cudaEventSynchronize(event.handle), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{"event never recorded"});
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, event.handle, other.handle), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(kinds_of_faults(), Kinds{"event never recorded"});
  cudaGetLastError();
}

TEST(ModelledRuntime, MemoryThatIsNotThere) {
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, std::size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  std::size_t before = 0, after = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 1000), cudaSuccess);
  EXPECT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_GE(before - after, 1000u);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  EXPECT_EQ(kinds_of_faults(), Kinds{"memory freed twice"});
  int own = 0;
  EXPECT_EQ(cudaFree(&own), cudaErrorInvalidValue);
  EXPECT_EQ(kinds_of_faults(), Kinds{"freed what was not allocated"});
  const TestStream s;
  EXPECT_EQ(cudaMemcpyAsync(&own, &own, 4, cudaMemcpyHostToDevice, s.handle), cudaErrorInvalidValue);
  EXPECT_EQ(kinds_of_faults(), Kinds{"wrong direction of a copy"});
  const Numbers device(4);
  std::vector<int> out(8);
  EXPECT_EQ(to_host(out.data(), device, 8, s), cudaSuccess);
  EXPECT_EQ(kinds_of_faults(), Kinds{"out of bounds"});
  cudaGetLastError();
}

TEST(ModelledRuntime, AFailedDeviceStaysFailed) {
  const TestStream s;
  queue_work(s.handle, "fails", [](WorkNumber) -> Progress { throw Stopped{cudaErrorIllegalAddress}; });
  EXPECT_EQ(cudaStreamSynchronize(s.handle), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
  forget_errors();
  EXPECT_EQ(cudaStreamSynchronize(s.handle), cudaSuccess);
}

TEST(ModelledRuntime, HandlesThatAreGone) {
  cudaStream_t stream = nullptr;  // the default one is not modelled
  for (int n = 0; n < 2; ++n) {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(kinds_of_faults(), Kinds{"invalid handle"});
    stream = TestStream().handle;
  }
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamDefault, 0), cudaErrorInvalidValue);
  EXPECT_EQ(kinds_of_faults(), Kinds{"not modelled"});
  cudaGetLastError();
}

using ModelledRuntimeDeathTest = DeathTest;

TEST_F(ModelledRuntimeDeathTest, HostCodeThatFollowsADevicePointer) {
  EXPECT_EXIT(
      {
        const Numbers device(4);
        const volatile int* p = device.data();
        std::exit(p[1]);
      },
      testing::ExitedWithCode(86), "host code follows a device pointer.*at byte 4 of memory of GPU 0");
}

using ModelledGpusDeathTest = TwoGpusDeathTest;

TEST_F(ModelledGpusDeathTest, StreamsBelongToADevice) {
  EXPECT_EXIT(
      {
        const TestStream s;
        cudaSetDevice(1);
        const TestEvent event;
        std::exit(cudaEventRecord(event.handle, s.handle) == cudaErrorInvalidResourceHandle ? 0 : 1);
      },
      testing::ExitedWithCode(86), "wrong device: cudaEventRecord");
}

// A copy may go from one to the other.
TEST_F(ModelledGpusDeathTest, MemoryBelongsToADevice) {
  EXPECT_EXIT(
      {
        const Numbers first(4);
        cudaSetDevice(1);
        const Numbers second(4);
        const TestStream s;
        cudaMemcpyAsync(second.data(), first.data(), 4 * sizeof(int), cudaMemcpyDeviceToDevice, s.handle);
        s.wait();
        if (!take_faults().empty()) std::_Exit(1);
        cudaMemsetAsync(first.data(), 0, 4 * sizeof(int), s.handle);
        s.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(86), "wrong device: fill.* on GPU 1 writes .* of GPU 0");
}

}  // namespace
}  // namespace gpu_model
