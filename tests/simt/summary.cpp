// What the tests of the model cost, in a line before the sum.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdio>
#include <ctime>

#include "tests/simt/model.hpp"

namespace maki::simt {
namespace {

class Summary : public testing::Environment {
 public:
  // Threads that wait for the next parallel loop of the CPU library would burn more time than all the rest.
  void SetUp() override { omp_set_num_threads(1); }
  void TearDown() override {
    const Counters c = counters();
    std::printf(
        "simt: %llu launches, %llu blocks, %llu threads, %llu switches, %llu accesses checked, %.1f CPU seconds\n",
        static_cast<unsigned long long>(c.launches), static_cast<unsigned long long>(c.blocks),
        static_cast<unsigned long long>(c.threads), static_cast<unsigned long long>(c.switches),
        static_cast<unsigned long long>(c.accesses), static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  }
};

const testing::Environment* const summary = testing::AddGlobalTestEnvironment(new Summary);

}  // namespace
}  // namespace maki::simt
