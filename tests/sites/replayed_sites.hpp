// Several sites in one process and thread: joined in memory, for calls of which each gives before any takes; or
// replayed, for what waits or has several ranks.
//
// Every replayed site's call runs until it wants a message that is not there yet. Then the next site has its turn, and
// so on around, each from its beginning again but with all messages that were sent so far. Calls have to be repeatable.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/on_device.hpp"
#include "wan/sites/ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

inline constexpr const char* kNotSentYet = "not sent yet";

// A ring whose sites are all in this process: send() puts messages into the receiver's memory. One that begins anew
// finds what it has sent before, and receives all messages again.
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
  bool arrived(int from, Phase phase) {
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

// One that keeps the messages of all, with the others: each has to be sent before it is received.
class MemoryRing : public ReplayRing {
 public:
  MemoryRing(std::shared_ptr<Sent> sent, int count, int me) : ReplayRing(*sent, count, me), sent_(std::move(sent)) {}

 private:
  std::shared_ptr<Sent> sent_;
};

// One ring for each site.
inline std::vector<std::unique_ptr<Ring>> make_memory_rings(int count) {
  const auto sent = std::make_shared<ReplayRing::Sent>();
  std::vector<std::unique_ptr<Ring>> rings;
  for (int i = 0; i < count; ++i) rings.push_back(std::make_unique<MemoryRing>(sent, count, i));
  return rings;
}

}  // namespace maki::sites

namespace maki::test {

// Site0, site1, ... of a ring in memory, each of one rank.
inline std::vector<std::unique_ptr<sites::Sites>> sites_in_memory(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("site" + std::to_string(i));
  std::vector<std::unique_ptr<sites::Sites>> all;
  for (auto& ring : sites::make_memory_rings(count))
    all.push_back(std::make_unique<sites::Sites>(std::move(ring), names, Communicator::self()));
  return all;
}

inline bool not_sent_yet(const Error& error) {  // at any rank
  return std::string(error.what()).find(sites::kNotSentYet) != std::string::npos;
}

inline std::vector<std::string> replayed_names(int count) {
  const std::vector<std::string> names = {"north", "east", "south", "west"};
  return {names.begin(), names.begin() + count};
}

// call(sites) at each of them; each site has all of `ranks`, which call this together. Other errors are thrown. Returns
// what was sent.
inline sites::ReplayRing::Sent replay_sites(int count, const std::function<void(sites::Sites&)>& call,
                                            const Communicator& ranks = Communicator::self()) {
  sites::ReplayRing::Sent sent;
  const std::vector<std::string> names = replayed_names(count);
  std::vector<bool> ended(names.size());
  for (int left = count; left > 0;) {
    for (int site = 0; site < count; ++site) {
      if (ended[static_cast<std::size_t>(site)]) continue;
      try {
        sites::Sites one(ranks.rank() == 0 ? std::make_unique<sites::ReplayRing>(sent, count, site) : nullptr, names,
                         ranks);
        call(one);
        ended[static_cast<std::size_t>(site)] = true;
        --left;
      } catch (const Error& error) {
        if (!not_sent_yet(error)) throw;
      }
    }
  }
  return sent;
}

// What each site's call throws.
inline std::vector<std::string> errors_at_sites(int count, const std::function<void(sites::Sites&)>& call) {
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  replay_sites(count, [&](sites::Sites& sites) {
    try {
      call(sites);
    } catch (const Error& error) {
      if (not_sent_yet(error)) throw;
      errors[static_cast<std::size_t>(sites.me())] = error.what();
    }
  });
  return errors;
}

}  // namespace maki::test
