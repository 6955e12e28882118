#include "src/plot/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include "tests/messages.hpp"

namespace maki::plot {
namespace {

TEST(Plot, LeavesOutWhatHasNoPlace) {
  const Plot plot{"N < M", "x", "y", true, false, {{"one", {0, 1, 10}, {1, 2, 3}}}};  // 0 has no logarithm
  const std::string svg = plot.svg();
  test::expect_contains(svg, {"N &lt; M", "d=\"M100.0 "});
  test::expect_lacks(svg, {"nan"});
}

// A run from a late time is not drawn as a point at the right.
TEST(Plot, LinearXAxesContainZeroWhereItIsNear) {
  const auto begins_at_the_left = [](double from, double to) {
    const Plot plot{"t", "time", "y", false, false, {{"n", {from, to}, {1, 2}}}};
    return plot.svg().find("class=\"s0\" d=\"M100.0 ") != std::string::npos;
  };
  EXPECT_TRUE(begins_at_the_left(1000, 1000.5));
  EXPECT_TRUE(begins_at_the_left(0, 3));
  EXPECT_FALSE(begins_at_the_left(1, 3));
}

TEST(Plot, PointsHaveBarsThatStayInside) {
  Plot plot{"t", "x", "y", false, true, {{"n", {1, 2}, {10, 1}, Style::kPoints, 3, {1, 2}}}};
  const std::string svg = plot.svg();
  test::expect_contains(svg, {"class=\"s3\"", "stroke-linecap"});
  EXPECT_NE(svg.find("V420"), std::string::npos) << "a bar below zero ends at the axis\n" << svg;
}

TEST(Plot, OfNothingAndOfConstantsIsWhole) {
  for (const double value : {0.0, 1.0, -3e-300, std::numeric_limits<double>::quiet_NaN()}) {
    const Plot plot{"", "", "", true, false, {{"", {1}, {value}}}};
    EXPECT_EQ(plot.svg().find("nan"), std::string::npos) << value;
    EXPECT_EQ(plot.svg().find("inf"), std::string::npos) << value;
  }
  EXPECT_NE((Plot{"", "", "", true, true, {}}.svg().find("</svg>")), std::string::npos);
}

TEST(Plot, ThinnedLinesKeepTheirExtremes) {
  Line line{"one", {}, {}};
  for (int i = 0; i < 10000; ++i) line.x.push_back(i), line.y.push_back(i == 5003 ? 9 : std::sin(0.01 * i));
  const Line few = thinned(line, 200);
  EXPECT_LE(few.x.size(), 200u);
  EXPECT_EQ(*std::max_element(few.y.begin(), few.y.end()), 9);
  EXPECT_TRUE(std::is_sorted(few.x.begin(), few.x.end()));
  EXPECT_EQ(thinned(few, 200).x, few.x);
}

TEST(Plot, TextIsEscaped) { EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;"); }

}  // namespace
}  // namespace maki::plot
