#include "kernels/device/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace maki {
namespace {

namespace fs = std::filesystem;

class HostMemory : public testing::Test {
 protected:
  void SetUp() override { root_ = fs::temp_directory_path() / ("maki_host_memory_" + std::to_string(getpid())); }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::size_t available() const { return host_memory_available(root_.string()); }
  fs::path root_;
};

TEST_F(HostMemory, IsTheKernelsFigure) {
  EXPECT_EQ(available(), 0u);
  write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:  7000 kB\n");
  EXPECT_EQ(available(), 7000u * 1024);
  EXPECT_GT(host_memory_available(), std::size_t{1} << 20);  // of this machine
}

TEST_F(HostMemory, OrWhatAControlGroupLeaves) {
  write("proc/meminfo", "MemAvailable:  7000 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "4096\n");
  EXPECT_EQ(available(), 7000u * 1024);
  write("sys/fs/cgroup/job/memory.max", "1000000\n");  // the limit may be set above
  write("sys/fs/cgroup/job/memory.current", "300000\n");
  EXPECT_EQ(available(), 700000u);
  write("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(available(), 800000u);
}

TEST_F(HostMemory, InTheFirstVersionToo) {
  write("proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000000\n");
  EXPECT_EQ(available(), 3000000u);
}

}  // namespace
}  // namespace maki
