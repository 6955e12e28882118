// Many messages over a path, both ways at once, and the proof that each arrived once, whole and in the order of its tag.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <vector>

#include "tests/wan/net/path/pair.hpp"

namespace maki::wan::test {

struct Transfers {
  int count = 200;               // each way
  std::size_t largest = 300000;  // most are smaller
  int tags = 7;
  unsigned seed = 1;
  double pause = 0;  // seconds between two sends
};

struct Letter {
  Tag tag;
  std::size_t size;
  bool any_size;  // how it is received
};

// What goes one way: the same list for the sender and for the receiver.
inline std::vector<Letter> letters(const Transfers& plan, unsigned way) {
  std::mt19937 random(plan.seed * 2 + way);
  std::vector<Letter> all;
  for (int i = 0; i < plan.count; ++i) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    const auto size = static_cast<std::size_t>(share * share * share * static_cast<double>(plan.largest));
    all.push_back({random() % static_cast<unsigned>(plan.tags), i % 11 == 0 ? 0 : size, random() % 3 == 0});
  }
  return all;
}

inline unsigned seed_of(const Transfers& plan, unsigned way, std::size_t i) {
  return plan.seed * 100003u + way * 50021u + static_cast<unsigned>(i);
}

inline void send_all(Path& path, const Transfers& plan, unsigned way) {
  const auto list = letters(plan, way);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bytes.push_back(pattern(list[i].size, seed_of(plan, way, i)));
    requests.push_back(path.start_send(list[i].tag, bytes.back()));
    if (plan.pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(plan.pause));
  }
  for (Request& request : requests) request.wait();
}

// Receives are posted a window at a time, so that some messages come before they are asked for and some after.
inline void receive_all(Path& path, const Transfers& plan, unsigned way) {
  const auto list = letters(plan, way);
  constexpr std::size_t kWindow = 30;
  std::vector<std::vector<std::byte>> buffers(list.size());
  std::vector<Request> requests(list.size());
  const auto check = [&](std::size_t i) {
    const auto expected = pattern(list[i].size, seed_of(plan, way, i));
    requests[i].wait();
    ASSERT_EQ(requests[i].size(), expected.size()) << "message " << i;
    if (list[i].any_size) {
      ASSERT_TRUE(std::ranges::equal(requests[i].take().view(), expected)) << "message " << i;
    } else {
      buffers[i].resize(expected.size());
      ASSERT_TRUE(buffers[i] == expected) << "message " << i;
    }
  };
  for (std::size_t i = 0; i < list.size() + kWindow; ++i) {
    if (i < list.size()) {
      buffers[i].resize(list[i].any_size ? 0 : list[i].size);
      requests[i] = list[i].any_size ? path.start_receive_any(list[i].tag, plan.largest)
                                     : path.start_receive(list[i].tag, buffers[i]);
    }
    if (i >= kWindow) check(i - kWindow);
  }
}

// Both ways at once. Seconds that it took; throws what any of the calls threw.
inline double exchange(Path& one, Path& other, const Transfers& plan) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<void>> all;
  all.push_back(std::async(std::launch::async, [&] { send_all(one, plan, 0); }));
  all.push_back(std::async(std::launch::async, [&] { receive_all(other, plan, 0); }));
  all.push_back(std::async(std::launch::async, [&] { send_all(other, plan, 1); }));
  all.push_back(std::async(std::launch::async, [&] { receive_all(one, plan, 1); }));
  for (auto& future : all) future.wait();
  for (auto& future : all) future.get();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace maki::wan::test
