#include "src/cli/wan/remote_path.hpp"

#include <gtest/gtest.h>

namespace maki {
namespace {

TEST(RemotePath, HostPortAndPath) {
  const auto full = parse_remote("amsterdam.example:6000/runs/one/");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->host, (wan::Endpoint{"amsterdam.example", 6000}));
  EXPECT_EQ(full->path, "runs/one/");
  const auto six = parse_remote("[2001:db8::1]:6000/a");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, (wan::Endpoint{"2001:db8::1", 6000}));
  EXPECT_EQ(six->path, "a");
  EXPECT_EQ(parse_remote("1.2.3.4:6000")->path, "");
  EXPECT_EQ(parse_remote("1.2.3.4:6000/")->path, "");
  EXPECT_EQ(parse_remote("h:1//etc/passwd")->path, "/etc/passwd");
}

TEST(RemotePath, PathsOfThisMachine) {
  for (const char* local :
       {"a", "a/b", "/abs", "./h:6000/a", "/h:6000/a", "dir/h:6000", "C:file", "h:60a/b", "h:", ":", ":6000/a", ""})
    EXPECT_FALSE(parse_remote(local)) << local;
}

}  // namespace
}  // namespace maki
