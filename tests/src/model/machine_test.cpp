// Machines for the models: their files, their sites, and the tables that reports make of them.
#include "src/model/reports.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/model/machine.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"

namespace maki::model {
namespace {

using namespace test;

TEST(Machine, OneSiteServesAnyNumber) {
  Machine machine;
  EXPECT_THROW(sites_of(machine, 1), Error);
  machine.sites = {{"one", 1, 1, 1}};
  EXPECT_EQ(sites_of(machine, 5).size(), 5u);
  machine.sites.push_back(machine.sites[0]);
  EXPECT_EQ(sites_of(machine, 1).size(), 1u);
  EXPECT_THROW(sites_of(machine, 3), Error);
}

TEST(Report, TablesAsText) {
  Table table{{"a", "b"}, {{"1", "x,y"}, {"22", "say \"z\""}}};
  EXPECT_EQ(table.csv(), "a,b\n1,\"x,y\"\n22,\"say \"\"z\"\"\"\n");
  EXPECT_EQ(table.text(), "a         b\n1       x,y\n22  say \"z\"\n");
}

const std::string kNetwork =
    "[network]\nlan_round_trip = \"0.1 ms\"\nlan_rate = \"1 GB/s\"\nwan_round_trip = 0.3\nwan_rate = \"800 Mbit/s\"\n";
const std::string kSite = "[[site]]\nname = \"one\"\ntree = 5e-9\nfft = 4e-9\nmesh = 1e-6\n";

std::string complaint(const std::string& text) {
  return error_of([&] { parse_machine(text, "machine.toml"); });
}

TEST(MachineFile, ReadsNumbersAndUnits) {
  const Machine machine = parse_machine("name = \"desk\"\n" + kNetwork + kSite, "machine.toml");
  EXPECT_EQ(machine.name, "desk");
  EXPECT_EQ(machine.network.lan_round_trip, 1e-4);
  EXPECT_EQ(machine.network.wan_round_trip, 0.3);
  EXPECT_EQ(machine.network.wan_rate, 1e8);
  ASSERT_EQ(machine.sites.size(), 1u);
  EXPECT_EQ(machine.sites[0].mesh, 1e-6);
  EXPECT_FALSE(machine.accelerator);
}

TEST(MachineFile, SaysWhatIsWrong) {
  expect_contains(complaint("name = "), {"line 1: not valid TOML"});
  expect_contains(complaint(kNetwork + "wan_rat = 3\n"), {"did you mean 'wan_rate'"});
  expect_contains(complaint("[network]\nwan_rate = \"3 parsec\"\n"), {"line 2: wan_rate: "});
  expect_contains(complaint("[network]\nwan_rate = -3\n"), {"not above zero"});
  expect_contains(complaint("[network]\nwan_rate = 3\n"), {"[network] is not complete"});
  expect_contains(complaint("[[site]]\nname = \"a\"\ntree = 1\n"), {"lacks a constant"});
  expect_contains(complaint("[accelerator]\nhost_rate = 1\n"), {"not complete"});
  expect_contains(complaint("network = 3\n"), {"network is no table"});
  expect_contains(complaint("[netwrk]\n"), {"did you mean 'network'"});
}

// Each machine that is shipped makes every report that it has constants for.
TEST(MachineFile, AllOfConfigsAreGood) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_directory() + "/configs/machines")) {
    SCOPED_TRACE(file.path());
    const Machine machine = read_machine(file.path());
    EXPECT_FALSE(machine.name.empty());
    EXPECT_FALSE(machine.source.empty());
    Problem problem;
    problem.particles = 0x1p24, problem.cells = 0x1p21;
    if (!machine.sites.empty()) {
      for (const auto& report : {table_report, speedup_report, efficiency_report, bandwidth_report, predict_report})
        EXPECT_GT(report(problem, machine, 2, 16).table.rows.size(), 1u);
    }
    FdpsRun run;
    run.particles = 0x1p20;
    if (machine.accelerator) {
      for (const auto& report : {fdps_table_report, fdps_speedup_report, fdps_bandwidth_report, fdps_predict_report})
        EXPECT_GT(report(run, machine).table.rows.size(), 0u);
    }
    ++count;
  }
  EXPECT_GE(count, 9);
}

}  // namespace
}  // namespace maki::model
