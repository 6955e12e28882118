#include "wan/net/path/held_memory.hpp"

#include <algorithm>
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

std::uint64_t left_of(std::uint64_t all, std::uint64_t taken) { return all - std::min(all, taken); }

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

std::uint64_t HeldMemory::peers() { return process().count; }

void HeldMemory::make_room(std::uint64_t unmatched_limit) {
  Process& process = maki::wan::process();
  const std::lock_guard lock(process.mutex);
  process.one_peer = std::max<std::uint64_t>(process.one_peer, 3 * unmatched_limit);
  process.all = std::max<std::uint64_t>(process.all, process.one_peer);
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

std::uint64_t HeldMemory::room_for_path(std::uint64_t wanted, std::uint64_t others) const {
  const Process& process = maki::wan::process();
  const std::uint64_t own = bytes_, most = process.one_peer, least = std::min(wanted, kLeastPromise);
  const std::uint64_t part = std::max(own + left_of(process.all, process.bytes), process.all / process.count);
  const std::uint64_t limit = std::min(most, part);
  const std::uint64_t room = left_of(limit, own == 0 ? 0 : own + limit / 8);
  const std::uint64_t for_each = limit / std::max<std::uint64_t>(1, most / least);  // about least * limit / most
  return room < least ? 0 : std::clamp(left_of(room, others * for_each) / 2, least, wanted);
}

bool Holding::grow_to(std::uint64_t bytes, const std::shared_ptr<HeldMemory>& memory, std::uint64_t step) {
  if (!memory || bytes <= bytes_) return true;
  const std::uint64_t more = (bytes - bytes_ + step - 1) / step * step;
  if (!memory->take(more)) return false;
  memory_ = memory;
  bytes_ += more;
  return true;
}

void Holding::shrink_to(std::uint64_t bytes) {
  if (bytes >= bytes_) return;
  memory_->give_back(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace maki::wan
