#include "src/model/output.hpp"

#include <gtest/gtest.h>

#include "kernels/error.hpp"
#include "src/model/machine.hpp"

namespace maki::model {
namespace {

TEST(Machine, OneSiteServesAnyNumber) {
  Machine machine;
  EXPECT_THROW(sites_of(machine, 1), Error);
  machine.sites = {{"one", 1, 1, 1}};
  EXPECT_EQ(sites_of(machine, 5).size(), 5u);
  machine.sites.push_back(machine.sites[0]);
  EXPECT_EQ(sites_of(machine, 1).size(), 1u);
  EXPECT_THROW(sites_of(machine, 3), Error);
}

TEST(Report, TablesAndPlotsAsText) {
  Table table{{"a", "b"}, {{"1", "x,y"}, {"22", "say \"z\""}}};
  EXPECT_EQ(table.csv(), "a,b\n1,\"x,y\"\n22,\"say \"\"z\"\"\"\n");
  EXPECT_EQ(table.text(), "a         b\n1       x,y\n22  say \"z\"\n");
  Plot plot{"N < M", "x", "y", true, false, {{"one", {0, 1, 10}, {1, 2, 3}}}};  // 0 has no logarithm
  const std::string svg = plot.svg();
  EXPECT_NE(svg.find("N &lt; M"), std::string::npos);
  EXPECT_NE(svg.find("d=\"M80.0 "), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace maki::model
