#include "tests/host/comm/until_lost_ranks.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {
namespace {

// A ring: a rank hears of its neighbour only, and so of a lost rank by others that wait in turn.
void pass_around(const Communicator& ranks) {
  std::vector<char> out(100000, 'x'), in(out.size());
  const Communicator::Outgoing to{(ranks.rank() + 1) % ranks.size(), out.data(), out.size()};
  const Communicator::Incoming from{(ranks.rank() + ranks.size() - 1) % ranks.size(), in.data(), in.size()};
  ranks.exchange({&to, 1}, {&from, 1});
}

// The same between device memories; by NCCL only the stream waits, and the host for that.
void pass_around(DevicePayload& payload) {
  const Stream& stream = test_stream();
  DeviceBuffer<char> out("sent", 100000), in("received", out.size());
  out.fill_zero(stream);
  const int ranks = payload.ranks().size(), rank = payload.ranks().rank();
  const Communicator::Outgoing to{(rank + 1) % ranks, out.data(), out.size()};
  const Communicator::Incoming from{(rank + ranks - 1) % ranks, in.data(), in.size()};
  payload.exchange(stream, {&to, 1}, {&from, 1});
  stream.synchronize();
}

[[noreturn]] void exhaust_memory() {
  pool_set_limit(1);
  const DeviceBuffer<double> lists("interaction lists", 1 << 22);
  throw Error("the limit was not kept");
}

}  // namespace

int run_until_lost(const std::string& calls) {
  const auto world = Communicator::world();
  const auto pair = world.split(world.rank() / 2, 0);
  std::optional<DevicePayload> payload;
  if (calls == "payload") payload.emplace(world);
  std::printf("rank %d is process %d\n", world.rank(), static_cast<int>(getpid()));
  std::fflush(stdout);
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
       std::chrono::steady_clock::now() < end;) {
    if (calls == "fail" && world.rank() == 2) throw Error("no more paper", "it was all used", "get some");
    if (calls == "memory" && world.rank() == 2) exhaust_memory();
    if (calls == "asleep") std::this_thread::sleep_for(std::chrono::minutes(1));
    if (calls == "work" && world.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
    if (calls == "leave" && world.rank() == 2) return 0;
    std::vector<double> values{1.0 * world.rank()};
    if (calls == "sum") world.sum(values);
    if (calls == "exchange") pass_around(world);
    if (payload) pass_around(*payload);
    if (calls == "row") pair.barrier();
    if (calls != "exchange" && !payload) world.barrier();
    if (calls == "work") return 0;
  }
  return 0;
}

}  // namespace maki::test
