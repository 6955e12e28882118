// The program itself, as a user calls it.
#include <set>
#include <sstream>

#include "src/report/figures.hpp"
#include "tests/force_errors.hpp"
#include "tests/src/cli/program_fixture.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace {

using namespace maki;
using namespace maki::test;

const std::array kCommands = {"run",    "ic",   "forces", "power", "bispectrum", "image",
                              "groups", "info", "config", "wan",   "sites"};

TEST_F(Program, HelpIsEverywhereWithAnExample) {
  const Result help = expect_end(call("--help"), 0);
  for (const std::string command : kCommands) {
    expect_words(help, {command});
    expect_end(call(command + " --help"), 0, {"Example:", "maki " + command});
  }
  expect_words(call("links --help"), {"maki links [OPTIONS] CATALOGUES...\n", "TEXT ... REQUIRED"});
  expect_words(call("wan copy --help"), {"maki wan copy [OPTIONS] SOURCE... DEST\n", "TEXT ... REQUIRED"});
}

TEST_F(Program, VersionSaysWhatItIs) {
  expect_end(call("--version"), 0, {"Maki ", "commit", "backend", "compiler", "FFT", "HDF5", "MPI"});
}

// libgomp says what it read before main().
TEST_F(Program, ThreadsThatWaitGiveUpTheirCore) {
  const std::string show = "OMP_DISPLAY_ENV=verbose ", ours = "GOMP_SPINCOUNT = '2000'";
  expect_words(call("--version", show), {ours, "Maki "});
  for (const std::string users : {"GOMP_SPINCOUNT=17 ", "OMP_WAIT_POLICY=active ", "OMP_WAIT_POLICY=passive "}) {
    const Result result = call("--version", show + users);
    expect_words(result, {"Maki "});
    expect_lacks(result.output, {ours});
  }
  // Where it cannot be started anew under its own name it goes on as it is.
  const std::string linker = "/lib64/ld-linux-x86-64.so.2";
  if (fs::exists(linker)) expect_words(call("--version", linker + " "), {"Maki "});
}

// The new start with GOMP_SPINCOUNT finds the cores of the first one, though its thread was bound to one of them.
TEST_F(Program, BoundThreadsHaveAllCores) {
  const std::string output = call("--version", "OMP_DISPLAY_ENV=true OMP_PROC_BIND=true OMP_PLACES=cores ").output;
  std::set<std::string> places;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("OMP_PLACES") != std::string::npos) places.insert(line);
  EXPECT_EQ(places.size(), 1u) << output;
}

TEST_F(Program, WrongUsageIsTwo) {
  for (const std::string wrong : {"", "fly", "info", "ic --nonsense", "wan bench --listen :0 --quick --full"})
    EXPECT_EQ(call(wrong).code, 2) << wrong;
}

TEST_F(Program, AMeasurementLooksForItsFileBefore) {
  expect_end(call("wan bench 127.0.0.1:1 --insecure --json " + path("none/figures.json")), 1,
             {"cannot write", "none/figures.json", "No such file or directory"});
  EXPECT_EQ(call("wan bench 127.0.0.1:1 --insecure --patience 1s --json " + path("figures.json")).code, 1);
  EXPECT_FALSE(fs::exists(path("figures.json"))) << "nothing was measured";
}

TEST_F(Program, AnOutputThatExistsIsRefusedBeforeTheWork) {
  const std::string universe = tiny(), there = write("there", "mine");
  expect_end(call("ic " + universe + " -o " + there), 1, {"exists already", "--overwrite"});
  ASSERT_EQ(call("ic " + universe + " -o " + path("set.hdf5")).code, 0);
  EXPECT_EQ(call("ic " + universe + " --overwrite -o " + path("set.hdf5")).code, 0);
  expect_end(call("image " + path("set.hdf5") + " -o " + there), 1, {"exists already", "--overwrite"});
  const Result forces = expect_end(call("forces " + path("set.hdf5") + " gravity.softening=0.02 -o " + there), 1,
                                   {"exists already", "--overwrite"});
  expect_lacks(forces.output, {"forces on"});
  EXPECT_EQ(test::text_of(there), "mine");
}

TEST_F(Program, WholeSetsHaveTheLayoutAndFilesOfTheConfiguration) {
  const std::string universe = tiny();
  const std::string settings = " output.layout=swift output.files=2 velocities=half subset=0.5 -o ";
  ASSERT_EQ(call("ic " + universe + settings + path("swift.hdf5")).code, 0);
  const std::string forces = "forces " + path("swift.0.hdf5") + " --targets 100 layout=swift files=2 -o ";
  ASSERT_EQ(call(forces + path("forces.hdf5")).code, 0);
  for (const std::string file : {"swift.0.hdf5", "swift.1.hdf5", "forces.0.hdf5", "forces.1.hdf5"})
    EXPECT_EQ(read_text(open_group(open_hdf5(path(file)), "Header"), "Code"), "SWIFT") << file;
  expect_end(call(forces + path("swift.hdf5") + " --overwrite"), 1, {"swift.0.hdf5' is to be read and written"});
  expect_end(call("info " + path("swift.1.hdf5")), 0, {"4096", "float32"});
  ASSERT_EQ(call("ic " + universe + settings + path("binary") + " --format gadget2").code, 0);
  expect_end(call("info " + path("binary.1")), 0, {"GADGET binary type 2", "4096"});
}

TEST_F(Program, PicturesOfIsolatedSetsLieAmidMostParticles) {
  const std::string set = path("set.hdf5");
  const std::string plummer = write("plummer.toml",
                                    "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\nparticles = 2000\n"
                                    "[gravity]\nsoftening = 0.01\n");
  ASSERT_EQ(call("ic " + plummer + " -o " + set).code, 0);  // without a truncation: some are far outside
  const Result picture = expect_end(call("image " + set + " --width 4 -o " + path("a.png")), 0, {"wrote"});
  expect_lacks(picture.output, {"no particle"});
  const Result slab = expect_end(call("image " + set + " --depth 1 --overwrite -o " + path("a.png")), 0, {"wrote"});
  expect_lacks(slab.output, {"no particle"});
  expect_end(call("image " + set + " --width 4 --centre 1e3 1e5 0 -o " + path("b.png")), 0,
             {"Warning: no particle is in the picture"});
}

TEST_F(Program, ABoxThatCountsAsAnIsolatedSetIsToldOf) {
  write_snapshot(path("set"), make_snapshot(100), {}, {.format = SnapshotFormat::kGadgetBinary1});
  std::fstream(path("set")).seekp(84).write("\0\0\0\0\0\0\0", 8);  // a Redshift of 0
  expect_end(call("power " + path("set") + " -o " + path("power.txt")), 1,
             {"taken as an isolated set: its Time 0.25 is not 1 / (1 + Redshift)", "no power spectrum"});
}

TEST_F(Program, NothingIsWrittenOverItsInput) {
  const std::string set = path("set.hdf5");
  ASSERT_EQ(call("ic " + tiny() + " -o " + set).code, 0);
  for (const std::string command : {"forces", "image", "power", "bispectrum", "groups"})
    expect_end(call(command + " " + set + " --overwrite -o " + path("./set.hdf5")), 1, {"is to be read and written"});
  const Result forces = call("forces " + set + " -o " + path("none/a.hdf5"));
  expect_end(forces, 1, {"cannot write", "none/a.hdf5", "make the directory"});
  EXPECT_EQ(forces.output.find("softening"), std::string::npos) << "the folder is looked at first";
  expect_end(call("info " + set), 0, {"4096"});
}

TEST_F(Program, TextThatFindsNoRoomIsAnError) {
  const std::string universe = tiny();
  for (const std::string& command : {std::string("--help"), std::string("config"), "run " + universe + " --estimate"})
    expect_end(call_shell("{ " + program() + " " + command + " > /dev/full; }"), 1,
               {"stdout did not take all of the text (", "No space left"});
  const std::string quick = " output_directory=" + path("run") + " output.image=false power_spectrum=false";
  expect_end(call_shell("{ " + program() + " run " + universe + quick + " > /dev/full; }"), 0);
}

TEST_F(Program, ConfigChecksWhatARunWouldRefuse) {
  expect_end(call("config " + tiny() + " cosmology.omega_baryon=0.9"), 1, {"omega_baryon"});
}

TEST_F(Program, AnUnknownCommandNamesTheNearest) {
  const std::vector<std::array<std::string, 3>> cases = {{"rum configs/quickstart.toml", "rum", "run"},
                                                         {"ifno", "ifno", "info"},
                                                         {"wan cpoy a b:1/", "cpoy", "copy"},
                                                         {"sites chekc --quick x.toml", "chekc", "check"},
                                                         {"wan -x bnech", "bnech", "bench"}};
  for (const auto& [line, word, meant] : cases) {
    const Result result =
        expect_end(call(line), 2, {"there is no command '" + word + "': did you mean '" + meant + "'?"});
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  }
  expect_words(call("wan"), {"subcommand is required"});
  expect_words(call("wan keygen a.key b"), {"not expected: b"});
}

TEST_F(Program, UserErrorsAreOneLineAndOne) {
  const std::string config = write("bad.toml", "[gravity]\nsofening = 3\n");
  for (const std::string& command : {"config " + config, "ic " + config + " -o " + path("ic.hdf5"), "run " + config}) {
    const Result result = expect_end(call(command), 1, {"maki: error: ", "bad.toml line 2", "gravity.softening"});
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  }
  EXPECT_EQ(call("run " + path("missing.toml")).code, 1);
  EXPECT_EQ(call("info " + path("missing.hdf5")).code, 1);
  EXPECT_FALSE(fs::exists(path("ic.hdf5")));
}

TEST_F(Program, ConfigPrintsAConfiguration) {
  const std::string config = write("all.toml", expect_end(call("config"), 0).output);
  expect_end(call("config " + config + " theta=0.7"), 0, {"theta = 0.7", "[cosmology]"});
}

TEST_F(Program, MeasuresSpectraOfSnapshots) {
  const std::string config = tiny();
  ASSERT_EQ(call("ic " + config + " -o " + path("a.hdf5")).code, 0);
  ASSERT_EQ(call("ic " + config + " -o " + path("b.hdf5") + " seed=2").code, 0);
  const auto last_row = [this](const std::string& file) {
    std::map<std::string, double> row;
    for (const auto& [name, numbers] : report::read_columns(path(file)).columns) row[name] = numbers.back();
    return row;
  };
  expect_words(call("power " + path("a.hdf5") + " -o " + path("p.txt") + " --folding 8"), {"wrote"});
  std::map<std::string, double> power = last_row("p.txt");
  EXPECT_GT(power["K"], 7.5 * 3.1415 * 16 / 10);  // Nyquist wave number times nearly 8
  EXPECT_GT(power["Linear"], 0);                  // linear theory, by the configuration in the file
  EXPECT_NEAR(power["NonLinear"], power["Linear"], 0.5 * power["Linear"]);
  EXPECT_EQ(power["Folding"], 8);
  const std::string cross = "power " + path("a.hdf5") + " --cross " + path("b.hdf5") + " -o " + path("c.txt");
  expect_words(call(cross), {"wrote"});
  EXPECT_EQ(last_row("c.txt").size(), 7u);
  EXPECT_EQ(call(cross).code, 1);  // it is there
  expect_words(call("bispectrum " + path("a.hdf5") + " -o " + path("b.txt") + " --config " + config), {"wrote"});
  EXPECT_GT(last_row("b.txt")["EqTree"], 0);
  expect_words(call("power " + path("a.hdf5") + " -o " + path("x.txt") + " --folding 3"), {"power of two"});
  expect_words(call("bispectrum " + path("a.hdf5") + " -o " + path("x.txt") + " --width 90"), {"a third of the mesh"});
  EXPECT_FALSE(fs::exists(path("x.txt")));
}

TEST_F(Program, MakesInitialConditionsOfEveryFormat) {
  const std::string config = write("ic.toml", "[box]\nsize = \"20 Mpc/h\"\n[initial]\nparticles_per_side = 8\n");
  for (const std::string format : {"hdf5", "gadget1", "gadget2", "gadget2 --big-endian"}) {
    const std::string file = path("ic." + format.substr(0, format.find(' ')) + (format.size() > 8 ? "be" : ""));
    EXPECT_EQ(call("ic " + config + " -o " + file + " --format " + format).code, 0) << format;
    const Result info = expect_end(call("info " + file), 0, {"512"});
    if (format == "hdf5") expect_words(info, {"43.0091", "(in the file)"});
    EXPECT_EQ(call("ic " + config + " -o " + file + " --format " + format).code, 1) << "overwrote " << file;
  }
  EXPECT_EQ(call("ic " + config + " -o " + path("x") + " --format tape").code, 2);
  expect_end(call("ic " + config + " w0=-0.9 -o " + path("x") + " --format gadget1"), 0,
             {"does not hold w0 -0.9, wa 0: give it to the run too"});
}

TEST_F(Program, RunsAUniverseAndWritesItsProducts) {
  const std::string run = "run " + tiny() + " output_directory=" + path("out");
  expect_end(call(run), 0,
             {"4096 particles", "10 Mpc/h", "sigma8 0.829; in the mean 2.09e+10 Msun/h a particle", "z = 49 to 40",
              "wrote"});
  for (const std::string number : {"000", "001", "002"})
    for (const std::string& name :
         {"snapshot_" + number + ".hdf5", "power_" + number + ".txt", "image_" + number + ".png"})
      EXPECT_GT(fs::file_size(directory_ / "out" / name), 100u) << name;
  EXPECT_TRUE(fs::exists(directory_ / "out" / "metrics.jsonl"));
  EXPECT_TRUE(fs::exists(directory_ / "out" / "log.txt"));

  const std::string snapshot = path("out/snapshot_002.hdf5");
  expect_words(call("info " + snapshot), {"z = 40", "4096"});
  EXPECT_EQ(call("power " + snapshot + " -o " + path("power.txt") + " --mesh 16").code, 0);
  EXPECT_EQ(call("image " + snapshot + " -o " + path("x.png") + " --axis x --depth \"2 Mpc/h\" --pixels 32").code, 0);
  const std::string forces = "forces " + snapshot + " --overwrite -o " + path("forces.hdf5") + " --targets 10";
  const std::string of_run = "(of the run that wrote it";
  expect_end(call(forces + " preset=fast"), 0,
             {"softening 0.02 Mpc/h, preset fast, theta 0.8 " + of_run + ", changed on the command line)"});
  expect_end(call(forces), 0, {"softening 0.02 Mpc/h, preset standard, theta 0.7 " + of_run + ")"});
  expect_words(call("info " + path("forces.hdf5")), {"Acceleration", "Potential", "10 x 3"});
  EXPECT_EQ(call("forces " + snapshot + " -o " + path("direct.hdf5") + " --direct").code, 1);
  EXPECT_FALSE(fs::exists(path("direct.hdf5")));

  expect_end(call(run), 1, {"maki: error:", "run.overwrite"});  // the directory holds a run
  EXPECT_EQ(call(run + " overwrite=true").code, 0);
}

TEST_F(Program, EstimatesBeforeARun) {
  const std::string estimate = "run " + tiny() + " --estimate";
  expect_end(call(estimate + " particles_per_side=1024 softening=0.3 output_directory=" + path("out")), 0,
             {"1073741824 particles", "mesh", "device", "disk"});
  EXPECT_FALSE(fs::exists(path("out")));
  // What this machine can hold.
  expect_end(call(estimate), 0,
             {"4096 particles", "interaction lists", "host, at the start", "free", "largest such run", "^3"});
  const std::string sphere = write("sphere.toml", "[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\n");
  expect_end(call("run " + sphere + " --estimate particles=4000000000"), 0,  // none of them is made
             {"4000000000 particles", "device, about"});
  const std::string set = path("sphere.hdf5"), settings = " units.length=kpc units.mass=Msun units.velocity=km/s";
  ASSERT_EQ(call("ic " + sphere + " softening=0.01 particles=100 -o " + set).code, 0);
  for (const std::string way : {" --estimate", ""})
    expect_end(call("run " + sphere + way + " softening=0.01 initial.kind=file initial.file=" + set + settings), 1,
               {"sphere.hdf5' has its own units", "leave them out"});
}

// With the table, before anything is made: no directory, no minutes of initial conditions.
TEST_F(Program, RefusesWhatDoesNotFit) {
  const std::string run = "run " + tiny() + " output_directory=" + path("out");
  expect_end(call(run + " particles_per_side=8192 softening=0.1"), 1,
             {"interaction lists", "maki: error: the run does not fit into memory (549755813888 particles", "at most",
              "run.ignore_memory = true"});
  EXPECT_FALSE(fs::exists(path("out")));
  const std::string file = path("ic.hdf5");
  ASSERT_EQ(call("ic " + path("tiny.toml") + " -o " + file).code, 0);
  expect_words(call("run " + path("tiny.toml") + " --estimate initial.kind=file initial.file=" + file),
               {"4096 particles"});
  EXPECT_EQ(call(run + " ignore_memory=true end_redshift=48 output.redshifts=[]").code, 0);
}

TEST_F(Program, AStoppedRunWithoutRestartsGoesOnFromItsSnapshot) {
  const std::string config = tiny();
  expect_end(call("run " + config + " output_directory=" + path("one") + " run.restarts_kept=0 time_limit=\"0.001 s\""),
             3, {"stopped.hdf5", "initial.kind=file"});
  expect_end(call("run " + config + " initial.kind=file initial.file=" + path("one/stopped.hdf5") +
                  " output_directory=" + path("two")),
             0);
  EXPECT_TRUE(fs::exists(path("two/snapshot_002.hdf5")));
}

TEST_F(Program, RunsThatMakeNoSenseLeaveNothing) {
  const std::string run = "run " + tiny() + " output_directory=" + path("out") + " ";
  for (const std::string wrong :
       {"end_redshift=60", "softening=1e-6", "gravity.mesh=8", "initial.particles=3", "theta=9"}) {
    EXPECT_EQ(call(run + wrong).code, 1) << wrong;
    EXPECT_FALSE(fs::exists(path("out"))) << wrong;
  }
  write("file", "");
  expect_words(call("run " + path("tiny.toml") + " output_directory=" + path("file/out")), {"maki: error:", "file"});
}

TEST_F(Program, ARunNeedsNoReader) {
  const std::string run = program() + " run " + tiny() + " output_directory=" + path("run");
  expect_words(call_shell("{ { " + run + "; echo code $? >&2; } | head -n 1; }"), {"code 0"});
  EXPECT_TRUE(fs::exists(path("run/report.html")));
}

TEST_F(Program, TextOfClosedStreamsIsInNoFile) {
  const std::string run = program() + " run " + tiny() + " output_directory=" + path("run");
  ASSERT_EQ(call_shell("{ " + run + " <&- >&- 2>&-; }").code, 0);
  for (const std::string& line : lines_of(path("run/metrics.jsonl"))) EXPECT_TRUE(line.starts_with('{')) << line;
}

TEST_F(Program, ErrorsThatNobodyCanReadHaveTheirCodes) {
  EXPECT_EQ(call_shell("{ " + program() + " run " + path("none.toml") + " 2>&-; }").code, 1);
  EXPECT_EQ(call_shell("{ " + program() + " nonsense 2>&-; }").code, 2);
}

// The limit's signal would end the program without a word and leave half a file.
TEST_F(Program, AFileOverTheLimitOnSizesIsAnError) {
  const std::string config = write("box.toml", "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 16\n");
  const Result result = expect_end(call("ic " + config + " -o " + path("ic.hdf5"), "ulimit -f 64; "), 1,
                                   {"maki: error: cannot write", "File too large", "ulimit -f"});
  EXPECT_EQ(result.output.find("cannot write"), result.output.rfind("cannot write")) << result.output;
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);  // the configuration
}

// ---- sets of few particles, and those that other codes write: forces, warnings, energies ----------------------------

// rms of the difference over rms of what is expected.
double relative_difference(const std::string& file, const std::string& of, const std::string& name) {
  const auto found = read_extra_dataset(file, name), expected = read_extra_dataset(of, name);
  EXPECT_EQ(found.size(), expected.size());
  return maki::testing::rms_error(found, expected);
}

// What other codes write: two particles at one place, and positions outside of the box. Said by all that reads them.
TEST_F(Program, SetsThatNeedRepairRun) {
  Snapshot set = make_snapshot(512);
  set.positions[300] = set.positions[301] = set.positions[12];
  set.positions[5][0] = -1e-6;
  set.positions[77][2] = -2.5;
  write_snapshot(path("set.hdf5"), set, {}, {});
  const std::vector<std::string> warnings = {"Warning: 2 particles outside of the box of 50", "by up to 2.5",
                                             "Warning: 3 particles share their point with others"};
  const std::string run = "run " + write("set.toml", "[initial]\nkind = \"file\"\n") +
                          " initial.file=" + path("set.hdf5") + " output_directory=" + path("out");
  expect_end(call(run + " end_redshift=2 output.image=false"), 0, warnings);
  expect_end(call("power " + path("set.hdf5") + " -o " + path("power.txt")), 0, warnings);
  expect_end(call("forces " + path("set.hdf5") + " -o " + path("a.hdf5") + " preset=precise"), 0, warnings);
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("b.hdf5") + " preset=precise --ewald").code, 0);
  for (const std::string name : {"Acceleration", "Potential"})
    EXPECT_LT(relative_difference(path("a.hdf5"), path("b.hdf5"), name), 0.01) << name;
}

// Its header, of Time = 1, would fit a box of today too.
TEST_F(Program, ForcesOfASetWhoseKindIsGiven) {
  Snapshot set = make_snapshot(512);
  set.header.time = 1;
  set.header.redshift = 0;
  write_snapshot(path("set"), set, {}, {.format = SnapshotFormat::kGadgetBinary1});
  const std::string forces = "forces " + path("set") + " --overwrite -o " + path("a.hdf5") + " softening=0.5";
  expect_end(call(forces + " run.kind=isolated --direct"), 0, {"fits a box of today too", "Mpc", "are assumed"});
  expect_end(call(forces + " --direct"), 1, {"direct sums are for isolated sets"});
  set.header.time = 0.5;
  set.header.redshift = 1;
  write_snapshot(path("set"), set, {}, {.format = SnapshotFormat::kGadgetBinary1, .overwrite = true});
  expect_end(call(forces + " run.kind=isolated"), 1, {"run.kind is \"isolated\"", "is a comoving box"});
  std::fstream(path("set"), std::ios::in | std::ios::out | std::ios::binary).seekp(76).write("\0\0\0\0\0\0\0\0", 8);
  expect_end(call(forces + " initial.redshift=1 --ewald"), 0, {"tells no scale factor: z = 1"});
}

// Far from the origin on one axis, points that differ are not taken for one.
TEST_F(Program, SetsFarFromTheOriginHaveNoTwins) {
  Snapshot set = make_snapshot(512);
  set.header = isolated_header();
  for (auto& position : set.positions) position[1] += 1e9;
  write_snapshot(path("set.hdf5"), set, {}, {});
  const std::string forces = "forces " + path("set.hdf5") + " -o " + path("a.hdf5") + " softening=0.5";
  expect_lacks(expect_end(call(forces), 0).output, {"share their point"});
}

// A leaf cannot divide them, nor does a list or a group depend on their number.
TEST_F(Program, ManyParticlesAtOnePlaceRun) {
  Snapshot set = make_snapshot(3000);
  set.header = isolated_header();
  for (std::size_t i = 1000; i < 2000; ++i) set.positions[i] = set.positions[1000];
  write_snapshot(path("set.hdf5"), set, {}, {});
  const std::string one_place = "Warning: 1000 particles share their point with others";
  const std::string settings = " softening=0.5 theta=0.2";
  expect_end(call("forces " + path("set.hdf5") + " -o " + path("a.hdf5") + settings), 0, {one_place});
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("b.hdf5") + settings + " --direct").code, 0);
  ASSERT_EQ(call("forces " + path("set.hdf5") + " -o " + path("c.hdf5") + settings + " gravity.method=direct").code, 0);
  for (const std::string name : {"Acceleration", "Potential"}) {
    EXPECT_LT(relative_difference(path("a.hdf5"), path("b.hdf5"), name), 1e-3) << name;
    EXPECT_LT(relative_difference(path("c.hdf5"), path("b.hdf5"), name), 1e-4) << name;
  }
  expect_end(call("run " + write("set.toml", "[run]\nkind = \"isolated\"\n[initial]\nkind = \"file\"\n") +
                  " initial.file=" + path("set.hdf5") + " output_directory=" + path("out") +
                  " softening=0.5 end_time=0.001 output.image=false"),
             0, {one_place});
}

// Passages of single pairs, which hold a good part of the energy of 64 particles and none of that of many.
TEST_F(Program, AFewParticlesKeepTheirEnergy) {
  const std::string run = "run " + write("few.toml", "[initial]\nparticles_per_side = 4\n") +
                          " output_directory=" + path("few") +
                          " run.overwrite=true output.image=false output.power_spectrum=false ";
  for (const std::string set : {"box.size=50 seed=1", "box.size=5 seed=1", "box.size=5 seed=5"}) {
    const Result result = call(run + set);
    const std::string words = "Largest energy error ";
    const std::size_t at = result.output.find(words);
    ASSERT_NE(at, std::string::npos) << result.output;
    EXPECT_LT(std::stod(result.output.substr(at + words.size())), 0.01) << set;
    expect_lacks(result.output, {"Warning"});
  }
  expect_words(call(run + "box.size=50 eta=0.4 end_redshift=48"),
               {"Warning: time.eta = 0.4 is long for 64 particles", "33 %", "leave time.eta out"});
}

}  // namespace
