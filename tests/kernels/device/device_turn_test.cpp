// Threads that take turns with the device, and a process with several devices. The modelled GPU tells of work that
// nothing orders, and of memory of another GPU.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/stream.hpp"

namespace maki {
namespace {

constexpr std::size_t kMany = 5000;

TEST(DeviceTurn, StreamsMayChangeTheirThreads) {
  const Stream one, other;
  DeviceBuffer<char> block("test.turns", kMany);
  std::thread([&] {
    const DeviceTurn turn;
    select_device(0, 0);
    block.fill_zero(one);
    block.release();
  }).join();
  const DeviceTurn turn;
  select_device(0, 0);
  DeviceBuffer<char> again("test.turns");
  const std::vector<char> values(kMany, 'x');
  again.upload(other, values);
  EXPECT_EQ(again.download(other), values);
}

TEST(DeviceTurn, DevicesHaveMemoryOfTheirOwn) {
  const int last = device_count() - 1;
  for (const int device : {last, 0, last, 0}) {
    select_device(device, 0);
    const Stream stream;
    DeviceBuffer<int> block("test.device", 100);
    block.fill_zero(stream);
    EXPECT_EQ(block.download(stream), std::vector<int>(100, 0));
    const std::vector<int> values(100, device + 1);
    block.upload(stream, values);
    EXPECT_EQ(block.download(stream), values);
  }
}

}  // namespace
}  // namespace maki
