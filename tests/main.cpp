// Runs the tests; the last line sums them up for people and for CI.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const auto& unit = *testing::UnitTest::GetInstance();
  if (unit.skipped_test_count() > 0) std::puts("Skipped tests say why above.");
  std::printf("%d passed, %d failed", unit.successful_test_count(), unit.failed_test_count());
  if (unit.skipped_test_count() > 0) std::printf(", %d skipped", unit.skipped_test_count());
  std::puts("");
  if (unit.successful_test_count() + unit.failed_test_count() == 0) {
    std::fputs("no test ran: is the filter right?\n", stderr);
    return 1;
  }
  return status;
}
