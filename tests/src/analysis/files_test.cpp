// Files of pictures and of spectra.

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numbers>
#include <numeric>
#include <sstream>

#include "src/analysis/picture.hpp"
#include "src/analysis/spectrum_files.hpp"
#include "src/report/figures.hpp"
#include "tests/places.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

using namespace test;
using ImageFile = InTempDir;
using PowerFile = InTempDir;

struct Decoded {
  png_uint_32 width = 0, height = 0;
  std::vector<Colour> pixels;
  std::map<std::string, std::string> texts;
};

Decoded decode(const std::string& path) {
  Decoded d;
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return d;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_read_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  d.width = png_get_image_width(png, info);
  d.height = png_get_image_height(png, info);
  EXPECT_EQ(png_get_bit_depth(png, info), 8);
  EXPECT_EQ(png_get_color_type(png, info), PNG_COLOR_TYPE_RGB);
  for (png_uint_32 y = 0; y < d.height; ++y) {
    const png_bytep row = png_get_rows(png, info)[y];
    for (png_uint_32 x = 0; x < d.width; ++x) d.pixels.push_back({row[3 * x], row[3 * x + 1], row[3 * x + 2]});
  }
  png_textp texts = nullptr;
  int count = 0;
  png_get_text(png, info, &texts, &count);
  for (int i = 0; i < count; ++i) d.texts[texts[i].key] = texts[i].text;
  png_destroy_read_struct(&png, &info, nullptr);
  std::fclose(file);
  return d;
}

double linear_of(std::uint8_t value) {
  const double x = value / 255.0;
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

// Perceived lightness (OKLab L, 0 to 1) of an sRGB colour.
double lightness(const Colour& colour) {
  const double r = linear_of(colour[0]), g = linear_of(colour[1]), b = linear_of(colour[2]);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
}

TEST(ColourMap, LightnessRisesInEqualSteps) {
  const auto& colours = density_colours();
  EXPECT_EQ(colours.front(), (Colour{0, 0, 0}));
  for (std::size_t i = 1; i < colours.size(); ++i) EXPECT_GE(lightness(colours[i]), lightness(colours[i - 1])) << i;
  for (std::size_t i = 16; i < colours.size(); ++i) {  // near black 8 bits are coarse
    EXPECT_NEAR(lightness(colours[i]), 0.97 * static_cast<double>(i) / 255, 0.012) << i;
  }
}

TEST_F(ImageFile, ScalesTheLogarithmAndPutsTheOriginBelow) {
  // A row of y = 0 over a row of larger y; the mean of a picture need not be 1, as in a zoom.
  const std::vector<float> density{0.01f, 0.03f, 1.0f, 1.0f, 0.0f, 40.0f};
  write_image(dir / "a.png", density, 3, 2, {.low = 0.01, .high = 1}, make_provenance());
  const Decoded d = decode(dir / "a.png");
  ASSERT_EQ(d.width, 3u);
  ASSERT_EQ(d.height, 2u);
  const auto& c = density_colours();
  EXPECT_EQ(d.pixels, (std::vector<Colour>{c[255], c[0], c[255], c[0], c[61], c[255]}));  // 61 = 255 ln 3 / ln 100
}

TEST_F(ImageFile, CarriesItsProvenance) {
  std::vector<float> density(400 * 300, 1.0f);
  density[5] = 100;
  const ImageOptions options{.side = 50, .label = "z = 0.00"};
  write_image(dir / "a.png", density, 400, 300, options, make_provenance());
  Decoded d = decode(dir / "a.png");
  EXPECT_EQ(d.width, 400u);
  EXPECT_EQ(d.texts["Software"], "Maki 0.1.0");
  EXPECT_EQ(d.texts["Commit"], "0123456789ab");
  EXPECT_EQ(d.texts["Configuration"], make_provenance().configuration);
  EXPECT_EQ(d.texts["Title"], "Projected density z = 0.00");
  // The scale bar: 10 of 50 Mpc/h are 80 pixels of white at the lower left.
  const auto white = [&](std::size_t x, std::size_t y) { return d.pixels[y * 400 + x] == Colour{255, 255, 255}; };
  EXPECT_TRUE(white(6, 292) && white(85, 293));
  EXPECT_FALSE(white(86, 293));
  EXPECT_EQ(dir.entries(), 1u);
}

TEST_F(ImageFile, AnEmptyFieldIsNoError) {
  write_image(dir / "a.png", std::vector<float>(16, 0.0f), 4, 4, {}, {});
  EXPECT_EQ(decode(dir / "a.png").pixels[0], density_colours()[0]);
}

TEST_F(ImageFile, RefusesToReplaceAndWrongSizes) {
  const std::vector<float> density(4, 1.0f);
  write_image(dir / "a.png", density, 2, 2, {}, {});
  expect_error([&] { write_image(dir / "a.png", density, 2, 2, {}, {}); }, {"exists"});
  expect_error([&] { write_image(dir / "b.png", density, 3, 2, {}, {}); }, {"4 numbers", "3 x 2"});
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(Picture, DrawsOnlyInside) {
  Picture picture(20, 10);
  picture.fill(-5, -5, 8, 8, {1, 2, 3});
  EXPECT_EQ(picture.at(2, 2), (Colour{1, 2, 3}));
  EXPECT_EQ(picture.at(3, 2), (Colour{0, 0, 0}));
  picture.text(15, 5, "z = 1.5", 3, {255, 255, 255});
  EXPECT_EQ(Picture::text_width("10", 2), 24);
}

constexpr std::size_t kSize = 128;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(SmoothWhereSparse, LeavesAnEvenPictureAlone) {
  for (const double value : {0.0, 0.01, 3.0, 1000.0})
    for (const double smooth : smooth_where_sparse(std::vector<double>(kSize * kSize, value), kSize))
      EXPECT_NEAR(smooth, value, 1e-12 * value);
}

TEST(SmoothWhereSparse, SpreadsSingleParticles) {
  std::vector<double> counts(kSize * kSize, 0.0);
  for (std::size_t i = 0; i < counts.size(); i += 67) counts[i] = 1;  // one in 67 pixels
  const std::vector<double> smooth = smooth_where_sparse(counts, kSize);
  EXPECT_NEAR(sum(smooth) / sum(counts), 1, 0.02);
  for (std::size_t y = 32; y < 96; ++y)
    for (std::size_t x = 32; x < 96; ++x) EXPECT_NEAR(smooth[y * kSize + x] * 67, 1, 0.6);
}

TEST(SmoothWhereSparse, KeepsWhatIsDense) {
  std::vector<double> counts(kSize * kSize, 0.0);
  for (std::size_t y = 60; y < 68; ++y)
    for (std::size_t x = 60; x < 68; ++x) counts[y * kSize + x] = 1e4;
  const std::vector<double> smooth = smooth_where_sparse(counts, kSize);
  EXPECT_NEAR(smooth[64 * kSize + 64], 1e4, 1);
  EXPECT_LT(smooth[64 * kSize + 74], 1e2);
  EXPECT_NEAR(sum(smooth) / sum(counts), 1, 0.1);
}

PowerTable make_table() {
  PowerTable table;
  table.k = {0.1, 0.2, 0.4};
  table.power = {2000, 1500, 900};
  table.modes = {6, 0, 98};
  table.shot_noise = 0.5;
  table.mesh = 64;
  table.growth = 0.32;
  table.linear = {1900, 0, 400};
  table.nonlinear = {2000, 0, 800};
  table.folding = {1, 1, 2};
  return table;
}

TEST_F(PowerFile, HasGadgetsColumns) {
  write_power_file(dir / "p.txt", make_table(), make_snapshot(1).header, make_provenance());
  const report::Columns file = report::read_columns(dir / "p.txt");
  std::istringstream words(file.comments.substr(file.comments.rfind('#') + 1));
  std::vector<std::string> names(std::istream_iterator<std::string>(words), {});
  EXPECT_EQ(names, (std::vector<std::string>{"K", "Delta2", "P", "ModeCount", "Shot", "Linear", "NonLinear", "P/Linear",
                                             "P/NonLinear", "Folding"}));
  expect_contains(file.comments, {"# Redshift 3", "# MeshSize 64", "# BoxSize 50", "# GrowthFactor 0.32", "# Bins 2",
                                  "Maki 0.1.0, commit 0123456789ab", "#   size = \"50 Mpc/h\"", "(Mpc/h)^3"});
  ASSERT_EQ(file.column("K").size(), 2u);  // the bin without modes is left out
  const double pi2 = std::numbers::pi * std::numbers::pi;
  EXPECT_NEAR(file.column("Delta2")[0], 1e-3 * 2000 / (2 * pi2), 1e-9);
  EXPECT_DOUBLE_EQ(file.column("K")[1], 0.4);
  EXPECT_DOUBLE_EQ(file.column("P")[1], 900);
  EXPECT_DOUBLE_EQ(file.column("ModeCount")[1], 98);
  EXPECT_NEAR(file.column("Shot")[1], 0.064 * 0.5 / (2 * pi2), 1e-9);
  EXPECT_DOUBLE_EQ(file.column("Linear")[1], 400);
  EXPECT_DOUBLE_EQ(file.column("NonLinear")[1], 800);
  EXPECT_DOUBLE_EQ(file.column("P/Linear")[1], 2.25);
  EXPECT_DOUBLE_EQ(file.column("P/NonLinear")[1], 1.125);
  EXPECT_DOUBLE_EQ(file.column("Folding")[1], 2);
}

TEST_F(PowerFile, RefusesToReplaceAndBadColumns) {
  PowerTable table = make_table();
  const SnapshotHeader header = make_snapshot(1).header;
  write_power_file(dir / "p.txt", table, header, {});
  expect_error([&] { write_power_file(dir / "p.txt", table, header, {}); }, {"exists"});
  write_power_file(dir / "p.txt", table, header, {}, true);
  table.nonlinear.pop_back();
  expect_error([&] { write_power_file(dir / "q.txt", table, header, {}); }, {"differ in length"});
  EXPECT_EQ(dir.entries(), 1u);
}

// bench/compare_power.py: exit status 0 where two spectra are as close as they have to be.
TEST_F(PowerFile, IsCompared) {
  if (!std::filesystem::exists(source_directory() + "/bench/compare_power.py") ||
      std::system("python3 -c '' 2>/dev/null") != 0)
    GTEST_SKIP() << "needs python3 and the sources";
  PowerTable table = make_table();
  table.k = {0.1, 0.2, 4};  // 2 is half the Nyquist wave number of 250000 particles in a box of 50
  table.modes = {6, 18, 98};
  const auto write = [&](const char* name) {
    write_power_file(dir / name, table, make_snapshot(1).header, make_provenance());
  };
  write("a.txt");
  table.power[1] *= 1.002;
  table.power[2] *= 1.5;
  write("b.txt");
  const auto status = [&](const std::string& arguments) {
    const std::string command = "cd '" + dir.path() + "' && python3 '" + source_directory() +
                                "/bench/compare_power.py' a.txt b.txt " + arguments + " > out.txt 2>&1";
    return std::system(command.c_str());
  };
  EXPECT_EQ(status("--limit 0.0021"), 0);
  EXPECT_NE(status("--limit 0.0019"), 0);
  expect_contains(text_of(dir / "out.txt"), {"2.000e-03 at k = 0.2", "5.000e-01"});
  EXPECT_NE(status("--limit nan"), 0);
  for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    table.power[1] = odd;
    std::filesystem::remove(dir / "b.txt");
    write("b.txt");
    EXPECT_NE(status("--limit 1e9"), 0) << odd;
    expect_contains(text_of(dir / "out.txt"), {"no finite number in 1 of 3 bins, first at k = 0.2"});
  }
}

}  // namespace
}  // namespace maki
