// What a build takes from the compiler wrappers of several MPIs, and from pkg-config.
#include <string>

#include "tests/ci/stand_ins.hpp"

namespace maki::test {
namespace {

// An MPI of one function; what is not of MPI is there for the compiler of these tests.
class FindPackages : public StandIns {
 protected:
  void prepare() override {
    executable("c++",
               "case $1 in -print-multiarch) echo x86_64-linux-gnu; exit;; esac\n"
               "source=$(cat)\n"
               "case $source in *MPI_Init*) g++ \"$@\" <<<\"$source\";; esac\n");
    executable("mpirun", "");
    fs::create_directory(path("include"));
    fs::create_directory(path("lib"));
    write("include/mpi.h", "extern \"C\" int MPI_Init(int*, char***);\n");
    write("mpi.cpp", "#include \"include/mpi.h\"\nint MPI_Init(int*, char***) { return 0; }\n");
    expect_end(call_shell("g++ -shared -fPIC -o " + path("lib/libmpi.so") + " " + path("mpi.cpp")), 0);
  }
  // With a wrapper that shows these words, HERE standing for the folder of the test.
  Result search(std::string shown, const std::string& what) const {
    executable("mpicc", "cat <<'END'\n" + here(std::move(shown)) + "\nEND\n");
    return among_stand_ins("CXX='" + compiler_ + "' PKG_CONFIG_PATH=" + directory_.string() + " bash " +
                           script("find_packages") + " " + what);
  }
  std::string found(const std::string& shown) const {
    expect_end(search(shown, path("packages.mk")), 0);
    return text_of(path("packages.mk"));
  }
  std::string compiler_ = "c++";
  std::string here(std::string text) const {
    for (auto at = text.find("HERE"); at != text.npos; at = text.find("HERE")) text.replace(at, 4, directory_.string());
    return text;
  }
};

TEST_F(FindPackages, WrappersOfOpenMpiMpichAndIntel) {
  const std::string path_of_two_words =
      found("gcc -IHERE/include -LHERE/lib -Wl,-rpath -Wl,HERE/other -Wl,--enable-new-dtags -lmpi");
  expect_contains(path_of_two_words, {here("MPI_CFLAGS     := -isystem HERE/include\n"), "MISSING        := \n",
                                      here(":= -LHERE/lib -Wl,-rpath,HERE/lib -Wl,-rpath,HERE/other -lmpi\n")});
  const std::string quoted =
      found("gcc -I\"HERE/include\" -L\"HERE/lib\" -Xlinker -rpath -Xlinker \"HERE/lib\" -lmpi -Wl,-rpath,$:$/..");
  expect_contains(quoted, {here("MPI_CFLAGS     := -isystem HERE/include\n"), "MISSING        := \n",
                           here(":= -LHERE/lib -Wl,-rpath,HERE/lib -lmpi\n")});
}

TEST_F(FindPackages, AnMpiThatDoesNotLinkIsMissing) {
  expect_contains(found("gcc -IHERE/include -LHERE/lib"), {"MISSING        := yes\n"});
  expect_end(search("gcc -IHERE/include -LHERE/lib", "--report"), 1, {"names no mpi.h or library that can be used"});
}

TEST_F(FindPackages, TheCompilerMayHaveWordsBeforeIt) {
  executable("ccache", "exec \"$@\"\n");
  compiler_ = "ccache c++";
  expect_contains(found("gcc -IHERE/include -LHERE/lib -lmpi"), {"MISSING        := \n"});
  compiler_ = "ccache no-such-compiler";
  expect_contains(found("gcc -IHERE/include -LHERE/lib -lmpi"), {"MISSING        := yes\n"});
}

TEST_F(FindPackages, ProgramsFindTheLibrariesOfPkgConfig) {
  const std::string head = "Name: x\nDescription: x\nVersion: 1\n";
  write("fmt.pc", head + here("Libs: -LHERE/lib -L/usr/lib64/openmpi/lib -lfmt\n"));
  write("zlib.pc", head + "Libs: -L/usr/lib64 -L/usr/lib/x86_64-linux-gnu/own -lz\n");
  const std::string libraries = found("gcc -IHERE/include -LHERE/lib -lmpi");
  expect_contains(libraries, {here("-LHERE/lib -Wl,-rpath,HERE/lib -L/usr/lib64/openmpi/lib "
                                   "-Wl,-rpath,/usr/lib64/openmpi/lib -lfmt")});
  EXPECT_EQ(times(libraries, "-rpath,/usr/lib64 ") + times(libraries, "-rpath,/usr/lib/x86_64-linux-gnu"), 0);
}

}  // namespace
}  // namespace maki::test
