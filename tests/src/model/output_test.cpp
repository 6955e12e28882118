#include "src/model/reports.hpp"

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

TEST(Report, TablesAsText) {
  Table table{{"a", "b"}, {{"1", "x,y"}, {"22", "say \"z\""}}};
  EXPECT_EQ(table.csv(), "a,b\n1,\"x,y\"\n22,\"say \"\"z\"\"\"\n");
  EXPECT_EQ(table.text(), "a         b\n1       x,y\n22  say \"z\"\n");
}

}  // namespace
}  // namespace maki::model
