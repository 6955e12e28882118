// JSON of the programs in bench/.
#include "bench/report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "tests/messages.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"

namespace maki {
namespace {

TEST(BenchReport, IsWrittenOrSaysWhyNot) {
  const test::TempDir dir;
  const auto write = [](const std::string& path) {
    bench::Report report("test", path);
    report.add("step", 0.25, "s");
    report.write();
  };
  write("");
  write(dir / "good.json");
  test::expect_contains(test::text_of(dir / "good.json"), {R"("what": "step", "value": 0.25, "unit": "s")"});
  test::expect_contains(test::error_of([&] { write(dir / "none/bad.json"); }), {"none/bad.json", "No such file"});
  if (std::filesystem::exists("/dev/full"))
    test::expect_contains(test::error_of([&] { write("/dev/full"); }), {"/dev/full", "No space left"});
}

TEST(BenchReport, SaysWhatThereWasNot) {
  const test::TempDir dir;
  bench::Report report("test", dir / "none.json");
  report.add("reuse step", std::numeric_limits<double>::infinity(), "s");
  testing::internal::CaptureStdout();
  report.print();
  test::expect_contains(testing::internal::GetCapturedStdout(), {" none s\n"});
  test::expect_contains(test::text_of(dir / "none.json"), {R"("value": null)"});
}

}  // namespace
}  // namespace maki
