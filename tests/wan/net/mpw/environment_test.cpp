// Keys and settings from the environment.
#include "wan/net/mpw/meeting.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/wan/helpers.hpp"

namespace maki::wan::mpw {
namespace {

Environment read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

using test::error_of, test::says;

TEST(Environment, AKeyOrLeaveToGoWithout) {
  EXPECT_EQ(read({{"MAKI_WAN_KEY", "/a/key:/b/key"}}).security.key_files,
            (std::vector<std::string>{"/a/key", "/b/key"}));
  EXPECT_TRUE(read({{"MAKI_WAN_INSECURE", "1"}}).security.insecure);
  const std::string none = error_of([] { read({}); });
  EXPECT_TRUE(says(none, "MAKI_WAN_KEY is not set"));
  EXPECT_TRUE(says(none, "maki wan keygen FILE"));
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "0"}}), Error);
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "yes"}}), Error);
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "1"}, {"MAKI_WAN_KEY", "k"}}), Error);
}

TEST(Environment, SettingsInLine) {
  const Environment e =
      read({{"MAKI_WAN_INSECURE", "1"},
            {"MAKI_WAN_SETTINGS",
             "streams=32, window = 4 MB; pacing=800 Mbit/s,patience=10 min,wait=2.5,listen=127.0.0.1"}});
  EXPECT_EQ(e.settings.streams, 32);
  EXPECT_TRUE(e.streams_given);
  EXPECT_EQ(e.settings.window, 4000000u);
  EXPECT_EQ(e.settings.pacing_rate, 1e8);
  EXPECT_EQ(e.settings.patience, 600);
  EXPECT_EQ(e.wait, 2.5);
  EXPECT_EQ(e.listen, "127.0.0.1");
  for (const char* wrong : {"streams=0", "streams=257", "streams=many", "window=4 parsecs", "pacing=5", "colour=blue",
                            "streams 5=", "window=-1", "send_chunk=3", "local_ports=70000"}) {
    EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "1"}, {"MAKI_WAN_SETTINGS", wrong}}), Error) << wrong;
  }
}

TEST(Environment, SettingsFromTheTableThatToolsPrint) {
  test::TemporaryFolder folder;
  const std::string file = folder / "path.toml";
  std::ofstream(file)
      << "# chosen for a long link\n[path]\nstreams = 48   # many\nwindow = \"16 MiB\"\nkey = [\"/a#1\", \"/b\"]\n"
      << "local_ports = \"6000-6100\"\n\n[other]\nthing = 5\n";
  const Environment e = read({{"MAKI_WAN_SETTINGS", file}});
  EXPECT_EQ(e.settings.streams, 48);
  EXPECT_EQ(e.settings.window, std::size_t{16} << 20);
  EXPECT_EQ(e.security.key_files, (std::vector<std::string>{"/a#1", "/b"}));
  EXPECT_EQ(e.settings.local_port_last, 6100);
  const std::string missing = error_of([] { read({{"MAKI_WAN_SETTINGS", "no_such_file"}}); });
  EXPECT_TRUE(says(missing, "no_such_file"));
}

}  // namespace
}  // namespace maki::wan::mpw
