#include "wan/sites/ring.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace maki::sites {
namespace {

struct Shared {
  using Key = std::array<int, 3>;  // to, from, phase
  std::mutex mutex;
  std::condition_variable came;
  std::map<Key, std::deque<std::pair<std::uint64_t, Message>>> messages;
};

class MemoryRing : public Ring {
 public:
  MemoryRing(std::shared_ptr<Shared> shared, int count, int me) : shared_(std::move(shared)), count_(count), me_(me) {}
  int count() const override { return count_; }
  int me() const override { return me_; }

  void send(int to, Phase phase, std::uint64_t number, Message message) override {
    const std::lock_guard lock(shared_->mutex);
    Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
    ++traffic.messages_sent;
    traffic.bytes_sent += message.size();
    shared_->messages[{to, me_, static_cast<int>(phase)}].emplace_back(number, std::move(message));
    shared_->came.notify_all();
  }
  void publish(Phase phase, std::uint64_t number, Message message) override {
    for (int to = 0; to < count_; ++to)
      if (to != me_) send(to, phase, number, message);
  }
  Message receive(int from, Phase phase, std::uint64_t number) override {
    std::unique_lock lock(shared_->mutex);
    auto& queue = shared_->messages[{me_, from, static_cast<int>(phase)}];
    Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
    if (queue.empty()) {
      const auto begun = std::chrono::steady_clock::now();
      if (!shared_->came.wait_for(lock, std::chrono::seconds(60), [&] { return !queue.empty(); }))
        throw SiteLost("site " + std::to_string(from) + " sends nothing", name(phase));
      ++traffic.waits;
      traffic.waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    }
    auto [sent_number, message] = std::move(queue.front());
    queue.pop_front();
    if (sent_number != number)
      throw Error("the sites are not in step",
                  std::string(name(phase)) + " " + std::to_string(sent_number) + " came for " + std::to_string(number));
    ++traffic.messages_received;
    traffic.bytes_received += message.size();
    return std::move(message);
  }
  bool arrived(int from, Phase phase) override {
    const std::lock_guard lock(shared_->mutex);
    return !shared_->messages[{me_, from, static_cast<int>(phase)}].empty();
  }
  std::array<Traffic, kPhases> take_traffic() override { return std::exchange(traffic_, {}); }
  void close() override {}

 private:
  std::shared_ptr<Shared> shared_;
  int count_, me_;
  std::array<Traffic, kPhases> traffic_;
};

}  // namespace

const char* name(Phase phase) {
  constexpr const char* names[] = {"sums", "mesh", "trees", "particles", "output", "control"};
  return names[static_cast<std::size_t>(phase)];
}

std::vector<std::unique_ptr<Ring>> make_memory_rings(int count) {
  const auto shared = std::make_shared<Shared>();
  std::vector<std::unique_ptr<Ring>> rings;
  for (int i = 0; i < count; ++i) rings.push_back(std::make_unique<MemoryRing>(shared, count, i));
  return rings;
}

}  // namespace maki::sites
