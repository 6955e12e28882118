#include "wan/net/path/held_memory.hpp"

#include <map>
#include <mutex>

namespace maki::wan {
namespace {

// Never destroyed: paths may be closed as late as the program's end.
struct Process {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<HeldMemory>> peers;
  std::atomic<std::uint64_t> bytes{0}, count{0}, one_peer{HeldMemoryLimits{}.one_peer}, all{HeldMemoryLimits{}.all};
};

Process& process() {
  static auto& only = *new Process;
  return only;
}

}  // namespace

HeldMemory::HeldMemory() { ++process().count; }
HeldMemory::~HeldMemory() { --process().count; }

std::shared_ptr<HeldMemory> HeldMemory::of(const std::string& peer) {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.peers.find(peer); found != all.peers.end())
    if (auto memory = found->second.lock()) return memory;
  std::erase_if(all.peers, [](const auto& item) { return item.second.expired(); });
  std::shared_ptr<HeldMemory> memory(new HeldMemory);
  all.peers[peer] = memory;
  return memory;
}

void HeldMemory::set_limits(const HeldMemoryLimits& limits) {
  process().one_peer = limits.one_peer;
  process().all = limits.all;
}

bool HeldMemory::take(std::uint64_t bytes) {
  Process& process = maki::wan::process();
  const std::uint64_t own = bytes_ += bytes, all = process.bytes += bytes;
  if (own <= process.one_peer && (all <= process.all || own <= process.all / process.count)) return true;
  give_back(bytes);
  return false;
}

void HeldMemory::give_back(std::uint64_t bytes) {
  bytes_ -= bytes;
  process().bytes -= bytes;
}

bool Holding::grow_to(std::uint64_t bytes, const std::shared_ptr<HeldMemory>& memory, std::uint64_t step) {
  if (!memory || bytes <= bytes_) return true;
  const std::uint64_t more = (bytes - bytes_ + step - 1) / step * step;
  if (!memory->take(more)) return false;
  memory_ = memory;
  bytes_ += more;
  return true;
}

}  // namespace maki::wan
