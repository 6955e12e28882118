// Sites of one rank each, on threads of this process with a ring in memory.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "wan/sites/memory_ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki::test {

inline std::vector<std::string> site_names(int count) {
  std::vector<std::string> names = {"north", "east", "south", "west"};
  names.resize(static_cast<std::size_t>(count));
  return names;
}

// call(sites) at all of them at once; what the first of them throws is thrown here, after all have ended.
inline void at_sites(int count, const std::function<void(sites::Sites&)>& call) {
  auto rings = sites::make_memory_rings(count);
  std::vector<std::exception_ptr> problems(rings.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        sites::Sites one(std::move(rings[i]), site_names(count), Communicator::self());
        call(one);
      } catch (...) {
        problems[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& problem : problems)
    if (problem) std::rethrow_exception(problem);
}

}  // namespace maki::test
