// What must not depend on the number of threads.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <type_traits>

#include "kernels/device/device.hpp"

namespace maki::test {

// EXPECTs that `make` returns the same, by ==, with each of these numbers of OpenMP threads.
template <class Make>
void expect_same_for_threads(const Make& make, std::initializer_list<int> numbers) {
  const int before = thread_count();
  std::optional<std::decay_t<decltype(make())>> first;
  for (const int threads : numbers) {
    select_device(0, threads);
    const auto made = make();
    if (!first) first = made;
    EXPECT_TRUE(made == *first) << threads << " threads";
  }
  select_device(0, before);
}

}  // namespace maki::test
