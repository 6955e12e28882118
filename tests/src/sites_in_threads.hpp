#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/error.hpp"
#include "tests/sites/memory_ring.hpp"
#include "wan/sites/sites.hpp"

namespace maki::test {

// call(sites) at `count` sites of one rank each, on threads of this process with a ring in memory; what each throws.
inline std::vector<std::string> errors_at_sites(int count, const std::function<void(sites::Sites&)>& call) {
  auto rings = sites::make_memory_rings(count);
  std::vector<std::string> names{"north", "east", "south", "west"}, errors(rings.size());
  names.resize(rings.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        sites::Sites one(std::move(rings[i]), names, Communicator::self());
        call(one);
      } catch (const Error& error) {
        errors[i] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

}  // namespace maki::test
