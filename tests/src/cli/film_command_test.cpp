// Films, slices and zooms of a run by its keys.
#include <set>

#include "src/analysis/image_files.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki {
namespace {

using namespace test;

using FilmOfARun = Program;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(FilmOfARun, HasEvenPicturesAndLeavesTheRunAsItIs) {
  const std::string config = write("tiny.toml", kTinyUniverse);
  const std::string same =
      " gravity.reuse=1 run.deterministic=true output.image_width=5 output.image_axis=x "
      "'output.image_centre=[1, 9.5, 3]' output.image_low=0.1 output.image_high=10";
  const Result plain = call("run " + config + same + " run.output_directory=" + path("plain"));
  const Result film = call("run " + config + same + " output.film=7 run.output_directory=" + path("film"));
  ASSERT_EQ(plain.code, 0) << plain.output;
  ASSERT_EQ(film.code, 0) << film.output;
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(fs::exists(path("film/film_0000" + std::to_string(i) + ".png"))) << i;
  EXPECT_FALSE(fs::exists(path("film/film_00007.png")));
  EXPECT_EQ(bytes_of(path("film/film_00006.png")), bytes_of(path("film/image_002.png"))) << "the last one is the end";
  EXPECT_NE(bytes_of(path("film/film_00000.png")), bytes_of(path("film/film_00006.png")));
  EXPECT_EQ(call("power " + path("plain/snapshot_002.hdf5") + " -o " + path("a.txt")).code, 0);
  EXPECT_EQ(call("power " + path("film/snapshot_002.hdf5") + " -o " + path("b.txt")).code, 0);
  const auto rows = [&](const char* name) {
    const std::string text = bytes_of(path(name));
    return text.substr(text.rfind("# ") == text.npos ? 0 : text.find('\n', text.rfind('#')));
  };
  EXPECT_EQ(rows("a.txt"), rows("b.txt")) << "steps and positions are those of the run without a film";
}

TEST_F(FilmOfARun, GoesOnWhereTheRunGoesOn) {
  const std::string config = write("tiny.toml", kTinyUniverse);
  const std::string same =
      " gravity.reuse=1 run.deterministic=true output.film=9 run.restart_steps=1 run.progress=none";
  ASSERT_EQ(call("run " + config + same + " run.output_directory=" + path("whole")).code, 0);
  fs::copy(path("whole"), path("cut"), fs::copy_options::recursive);
  for (int i = 0; i < 9; ++i) fs::remove(path("cut/film_0000" + std::to_string(i) + ".png"));
  std::set<std::string> restarts;
  for (const auto& entry : fs::directory_iterator(path("cut")))
    if (entry.path().filename().string().starts_with("restart_")) restarts.insert(entry.path().string());
  ASSERT_EQ(restarts.size(), 2u);
  const Result resumed = call("resume " + *restarts.begin() + " run.progress=none");
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_FALSE(fs::exists(path("cut/film_00000.png"))) << "what was taken before the restart is not taken again";
  EXPECT_EQ(thumbnail_of(path("cut/film_00008.png"), 64), thumbnail_of(path("whole/film_00008.png"), 64));
}

TEST_F(FilmOfARun, WrongPlacesAndColoursAreRefused) {
  const std::string config = write("tiny.toml", kTinyUniverse);
  expect_words(call("run " + config + " 'output.image_centre=[1, 2]'"), {"image_centre has 2 numbers", "give three"});
  expect_words(call("run " + config + " 'output.image_centre=[1, 2, 30]'"), {"30", "not in the box", "10"});
  expect_words(call("run " + config + " output.image_low=3 output.image_high=2"), {"image_low = 3", "image_high = 2"});
}

TEST_F(FilmOfARun, NoReportWhereNoneIsWanted) {
  const std::string config = write("tiny.toml", kTinyUniverse);
  const Result run = call("run " + config +
                          " output.report=false time.end_redshift=44 run.progress=none "
                          "run.output_directory=" +
                          path("run"));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output, "") << "run.progress = none says nothing";
  EXPECT_FALSE(fs::exists(path("run/report.html")));
  EXPECT_EQ(call("report " + path("run")).code, 0);
  EXPECT_TRUE(fs::exists(path("run/report.html")));
}

}  // namespace
}  // namespace maki
