// A test during which the modelled GPU finds a fault fails, whatever it compared.
#include <gtest/gtest.h>

#include "tests/gpu_model/report.hpp"

namespace gpu_model {
namespace {

class Listener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    for (const Fault& f : take_faults()) ADD_FAILURE() << "GPU model: " << to_string(f);
  }
};

const int added = (testing::UnitTest::GetInstance()->listeners().Append(new Listener), 0);

}  // namespace
}  // namespace gpu_model
