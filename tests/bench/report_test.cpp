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

using namespace test;

TEST(BenchReport, IsWrittenOrSaysWhyNot) {
  const TempDir dir;
  const auto write = [](const std::string& path) {
    bench::Report report("test", path);
    report.add("step", 0.25, "s");
    report.write();
  };
  write("");
  write(dir / "good.json");
  expect_contains(text_of(dir / "good.json"), {R"("what": "step", "value": 0.25, "unit": "s")"});
  expect_error([&] { write(dir / "none/bad.json"); }, {"none/bad.json", "No such file"});
  if (std::filesystem::exists("/dev/full")) expect_error([&] { write("/dev/full"); }, {"/dev/full", "No space left"});
}

TEST(BenchReport, SaysWhatThereWasNot) {
  const TempDir dir;
  bench::Report report("test", dir / "none.json");
  report.add("reuse step", std::numeric_limits<double>::infinity(), "s");
  testing::internal::CaptureStdout();
  report.print();
  expect_contains(testing::internal::GetCapturedStdout(), {" none s\n"});
  expect_contains(text_of(dir / "none.json"), {R"("value": null)"});
}

}  // namespace
}  // namespace maki
