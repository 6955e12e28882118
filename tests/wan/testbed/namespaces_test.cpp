// Namespaces: what runs inside, and that nothing stays behind.
#include "tests/testbed/namespaces.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tests/testbed/units.hpp"
#include "wan/net/error.hpp"

namespace maki::testbed {
namespace {

namespace fs = std::filesystem;

class NamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }
  static fs::path space_of_thread() { return fs::read_symlink("/proc/thread-self/ns/net"); }
};

TEST_F(NamespaceTest, ThreadsAndProgramsRunInside) {
  const Namespace space(namespace_name("test"));
  const fs::path outside = space_of_thread();
  fs::path inside, of_child;
  space.within([&] {
    inside = space_of_thread();
    std::thread([&] { of_child = space_of_thread(); }).join();
  });
  EXPECT_NE(inside, outside);
  EXPECT_EQ(of_child, inside);
  {
    const InsideNamespace here(space.name());
    EXPECT_EQ(space_of_thread(), inside);
  }
  EXPECT_EQ(space_of_thread(), outside);
  const std::string shell = "test $(readlink /proc/self/ns/net) = '" + inside.string() + "' && exit 7";
  EXPECT_EQ(wait_for(spawn({"sh", "-c", shell}, space.name())), 7);
  EXPECT_EQ(wait_for(spawn({"no such program"}, space.name())), 127);
  EXPECT_THROW(space.within([] { throw wan::Error("from inside"); }), wan::Error);
}

TEST_F(NamespaceTest, EndsWithWhatRunsInside) {
  pid_t child = 0;
  std::string name;
  {
    const Namespace space(namespace_name("test"));
    name = space.name();
    EXPECT_TRUE(fs::exists("/run/netns/" + name));
    EXPECT_THROW(Namespace{name}, wan::Error);
    child = spawn({"sleep", "1000"}, space.name());
    while (fs::read_symlink("/proc/" + std::to_string(child) + "/ns/net") == space_of_thread()) usleep(1000);
  }
  EXPECT_EQ(wait_for(child), 128 + SIGTERM);
  EXPECT_FALSE(fs::exists("/run/netns/" + name));
  EXPECT_THROW(enter_namespace(name), wan::Error);
}

TEST(Units, AsPeopleWriteThem) {
  EXPECT_DOUBLE_EQ(parse_seconds("270ms"), 0.27);
  EXPECT_DOUBLE_EQ(parse_seconds("2.1 ms"), 2.1e-3);
  EXPECT_DOUBLE_EQ(parse_rate("800Mbit"), 8e8);
  EXPECT_DOUBLE_EQ(parse_rate("100MB"), 8e8);
  EXPECT_DOUBLE_EQ(parse_bytes("10MB"), 1e7);
  EXPECT_DOUBLE_EQ(parse_bytes("64KiB"), 65536);
  for (const char* wrong : {"", "ms", "10 parsecs", "-1ms"}) EXPECT_THROW(parse_seconds(wrong), wan::Error) << wrong;
}

}  // namespace
}  // namespace maki::testbed
