// Rings whose sites are all in this process: send() puts messages into the receiver's memory.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki::sites {

inline constexpr const char* kNotSentYet = "not sent yet";

// One that begins anew finds what it has sent before, and receives all messages again.
class ReplayRing : public Ring {
 public:
  using Key = std::array<int, 3>;  // to, from, phase
  using Sent = std::map<Key, std::vector<std::pair<std::uint64_t, Message>>>;

  ReplayRing(Sent& sent, int count, int me) : sent_(sent), count_(count), me_(me) {}
  int count() const override { return count_; }
  int me() const override { return me_; }
  void send(int to, Phase phase, std::uint64_t number, Message message) override {
    const Key key = {to, me_, static_cast<int>(phase)};
    Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
    ++traffic.messages_sent;
    traffic.bytes_sent += message.size();
    auto& queue = sent_[key];
    if (sending_[key]++ == queue.size()) queue.emplace_back(number, std::move(message));
  }
  void publish(Phase phase, std::uint64_t number, Message message) override {
    for (int to = 0; to < count_; ++to)
      if (to != me_) send(to, phase, number, message);
  }
  Message receive(int from, Phase phase, std::uint64_t number) override {
    const Key key = {me_, from, static_cast<int>(phase)};
    if (!arrived(from, phase)) throw Error(kNotSentYet);
    const auto& [sent_as, message] = sent_[key][received_[key]++];
    if (sent_as != number) throw Error("the sites are not in step");
    Traffic& traffic = traffic_[static_cast<std::size_t>(phase)];
    ++traffic.messages_received;
    traffic.bytes_received += message.size();
    return message;
  }
  bool arrived(int from, Phase phase) {  // not thread-safe
    const Key key = {me_, from, static_cast<int>(phase)};
    return received_[key] < sent_[key].size();
  }
  std::array<Traffic, kPhases> take_traffic() override { return std::exchange(traffic_, {}); }
  void close() override {}

 private:
  Sent& sent_;
  int count_, me_;
  std::map<Key, std::size_t> sending_, received_;
  std::array<Traffic, kPhases> traffic_{};
};

// receive() waits for other threads; where one thread drives all sites, it has to send every message before it receives
// it.
class MemoryRing : public ReplayRing {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable came;
    Sent sent;
  };

  MemoryRing(std::shared_ptr<Shared> shared, int count, int me)
      : ReplayRing(shared->sent, count, me), shared_(std::move(shared)) {}
  void send(int to, Phase phase, std::uint64_t number, Message message) override {
    const std::lock_guard lock(shared_->mutex);
    ReplayRing::send(to, phase, number, std::move(message));
    shared_->came.notify_all();
  }
  Message receive(int from, Phase phase, std::uint64_t number) override {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->came.wait_for(lock, std::chrono::seconds(60), [&] { return arrived(from, phase); }))
      throw SiteLost("site " + std::to_string(from) + " sends nothing", name(phase));
    return ReplayRing::receive(from, phase, number);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

// One ring for each site.
inline std::vector<std::unique_ptr<Ring>> make_memory_rings(int count) {
  const auto shared = std::make_shared<MemoryRing::Shared>();
  std::vector<std::unique_ptr<Ring>> rings;
  for (int i = 0; i < count; ++i) rings.push_back(std::make_unique<MemoryRing>(shared, count, i));
  return rings;
}

}  // namespace maki::sites
