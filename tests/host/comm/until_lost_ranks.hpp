// A job that goes on until one of its ranks is lost.
#pragma once

#include <string>

namespace maki::test {

// Every rank prints "rank R is process P" and makes the calls named for a minute: "barrier", "sum", "exchange" (a
// ring), "row" (a barrier of pairs of ranks, then of all), "asleep" (no call at all, as in another library's), "fail"
// (rank 2 throws), "memory" (rank 2 has too little), "leave" (rank 2 comes to its end alone). Whoever started the job
// stops or ends one of the ranks meanwhile. "work" ends well after a few seconds, in which rank 2 makes no call.
int run_until_lost(const std::string& calls);

}  // namespace maki::test
