// Messages that overtake others. Those of up to 16 kB go before longer ones; among the longer ones, and among the short
// ones, those with a more urgent tag go first, also before what is left of a message whose sending has begun. What lies
// in a socket already (64 kB for each of several streams) is not overtaken, nor what waits in the network: there,
// pacing a little below the line's rate keeps queues short.
#pragma once

#include "wan/net/path.hpp"

namespace maki::wan {

inline constexpr int kMostUrgent = 62;

// A tag of urgency 0 (the least) is the tag itself; `tag` is below 2^56. Both sides use the same.
inline constexpr Tag urgent(Tag tag, int urgency) { return tag | static_cast<Tag>(urgency) << 56; }
inline constexpr int urgency_of(Tag tag) { return tag > kMaxTag ? 0 : static_cast<int>(tag >> 56); }

}  // namespace maki::wan
