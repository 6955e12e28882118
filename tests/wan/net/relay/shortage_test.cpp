// A relay whose process has no descriptors left.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/wan/net/relay/rig.hpp"

namespace maki::wan {
namespace {

using namespace test;

// While it lives nothing can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit tight{static_cast<rlim_t>(Socket(dup(0)).descriptor()), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(Relay, SessionsOutliveAShortageOfDescriptors) {
  Rig rig;
  rig.settings.threads = 1;
  rig.start();
  Joined one = join(rig), other = join(rig);
  {
    const NoDescriptors shortage;
    for (const Socket* socket : {&one.here, &one.there, &other.here}) EXPECT_TRUE(put(*socket, pattern(1000, 1)));
    other.here = Socket();
    for (const Socket* socket : {&one.here, &one.there, &other.there})
      EXPECT_FALSE(ready(socket->descriptor(), POLLIN, 100));
    EXPECT_EQ(rig.relay->status().sessions, 2);
  }
  for (const Socket* socket : {&one.here, &one.there}) EXPECT_EQ(get(*socket, 1000), pattern(1000, 1));
  EXPECT_EQ(get(other.there, 1001), pattern(1000, 1));  // and then its end
  EXPECT_TRUE(put(one.here, pattern(1000, 2)));
  EXPECT_EQ(get(one.there, 1000), pattern(1000, 2));
}

}  // namespace
}  // namespace maki::wan
