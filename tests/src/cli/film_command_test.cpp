// Films, slices and zooms of a run by its keys.
#include "src/analysis/picture.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace maki {
namespace {

using namespace test;

class FilmOfARun : public Program {
 protected:
  Result run(const std::string& directory, const std::string& settings) const {
    return call("run " + tiny() + " " + settings + " run.output_directory=" + path(directory));
  }
};

TEST_F(FilmOfARun, HasEvenPicturesAndLeavesTheRunAsItIs) {
  const std::string same =
      "gravity.reuse=1 run.deterministic=true output.image_width=5 output.image_axis=x "
      "'output.image_centre=[1, 9.5, 3]' output.image_low=0.1 output.image_high=10";
  expect_end(run("plain", same), 0);
  expect_end(run("film", same + " output.film=7"), 0);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(fs::exists(path("film/film_0000" + std::to_string(i) + ".png"))) << i;
  EXPECT_FALSE(fs::exists(path("film/film_00007.png")));
  EXPECT_EQ(text_of(path("film/film_00006.png")), text_of(path("film/image_002.png"))) << "the last one is the end";
  EXPECT_NE(text_of(path("film/film_00000.png")), text_of(path("film/film_00006.png")));
  EXPECT_EQ(call("power " + path("plain/snapshot_002.hdf5") + " -o " + path("a.txt")).code, 0);
  EXPECT_EQ(call("power " + path("film/snapshot_002.hdf5") + " -o " + path("b.txt")).code, 0);
  const auto rows = [&](const char* name) {
    const std::string text = text_of(path(name));
    return text.substr(text.rfind("# ") == text.npos ? 0 : text.find('\n', text.rfind('#')));
  };
  EXPECT_EQ(rows("a.txt"), rows("b.txt")) << "steps and positions are those of the run without a film";
}

TEST_F(FilmOfARun, GoesOnWhereTheRunGoesOn) {
  expect_end(run("whole", "gravity.reuse=1 run.deterministic=true output.film=9 run.restart_steps=1 run.progress=none"),
             0);
  fs::copy(path("whole"), path("cut"), fs::copy_options::recursive);
  for (int i = 0; i < 9; ++i) fs::remove(path("cut/film_0000" + std::to_string(i) + ".png"));
  ASSERT_EQ(restarts_in(path("cut")).size(), 2u);
  expect_end(call("resume " + restarts_in(path("cut")).front() + " run.progress=none"), 0);
  EXPECT_FALSE(fs::exists(path("cut/film_00000.png"))) << "what was taken before the restart is not taken again";
  EXPECT_EQ(thumbnail_of(path("cut/film_00008.png"), 64), thumbnail_of(path("whole/film_00008.png"), 64));
}

TEST_F(FilmOfARun, WrongPlacesAndColoursAreRefused) {
  expect_words(run("no", "'output.image_centre=[1, 2]'"), {"image_centre has 2 numbers", "give three"});
  expect_words(run("no", "'output.image_centre=[1, 2, 30]'"), {"30", "not in the box", "10"});
  expect_words(run("no", "output.image_low=3 output.image_high=2"), {"image_low = 3", "image_high = 2"});
}

TEST_F(FilmOfARun, EmptySpaceBesideAnIsolatedSetIsToldOfOnce) {
  const std::string plummer = write("plummer.toml",
                                    "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\nparticles = 200\n"
                                    "[gravity]\nsoftening = 0.05\n[time]\nend_time = 0.01\n");
  const std::string words = "no particle is in the picture";
  const Result far =
      expect_end(call("run " + plummer + " output.film=3 'output.image_centre=[1e5, 0, 0]' image_width=10" +
                      " image_pixels=16 run.output_directory=" + path("far")),
                 0, {words});
  EXPECT_EQ(far.output.find(words), far.output.rfind(words)) << far.output;
}

TEST_F(FilmOfARun, NoReportWhereNoneIsWanted) {
  const Result quiet = expect_end(run("run", "output.report=false time.end_redshift=44 run.progress=none"), 0);
  EXPECT_EQ(quiet.output, "") << "run.progress = none says nothing";
  EXPECT_FALSE(fs::exists(path("run/report.html")));
  EXPECT_EQ(call("report " + path("run")).code, 0);
  EXPECT_TRUE(fs::exists(path("run/report.html")));
}

}  // namespace
}  // namespace maki
