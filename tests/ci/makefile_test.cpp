// The Makefile in a tree of few sources, with a compiler that only makes files.
#include <chrono>
#include <string>

#include "tests/ci/stand_ins.hpp"

namespace maki::test {
namespace {

class Makefile : public StandIns {
 protected:
  void prepare() override {
    for (const char* part : {".ci", ".gitignore", "Makefile", "tests/gpu_model/rules.mk", "src/python/rules.mk"}) {
      fs::create_directories((tree_ / part).parent_path());
      fs::copy(source_directory() + "/" + part, tree_ / part, fs::copy_options::recursive);
    }
    fs::create_directories(tree_ / "src");
    write("maki/src/main.cpp", "");
    write("maki/src/run.cpp", "");
    executable("c++", "while [ $# -gt 0 ]; do case $1 in -o) touch \"$2\";; esac; shift; done\n");
    executable("ccache", "exec \"$@\"\n");
    executable("mpicc", "echo gcc -lmpi\n");
    executable("mpirun", "");
  }
  Result make(const std::string& words) const {
    return among_stand_ins("make --no-print-directory -C " + tree_.string() + " BACKEND=cpu JOBS=2 CXX=c++ " + words);
  }
  const fs::path tree_ = directory_ / "maki";
};

TEST_F(Makefile, TheUsersFlagsAreAddedToOurs) {
  const std::string flags =
      "CPPFLAGS='-DA=b#c' CXXFLAGS=\"-march=native -DT='\\\"t\\\"'\" "
      "LDFLAGS='-L/of/user -Wl,-z,$$ORIGIN' LDLIBS=-lof_user ";
  expect_end(make("-n " + flags + "build/maki"), 0,
             {"-std=c++20", " -I. ", "-DA=b#c -march=native -DT='\"t\"' ", "-L/of/user -Wl,-z,$ORIGIN -o build/maki ",
              "-lmpi", "-lof_user\n"});
  // Searched and compiled anew for other flags, and only then.
  const std::string remembered = text_of(tree_ / "build/cpu/packages.flags");
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(tree_ / "build/cpu/packages.mk", before);
  expect_end(make("-n " + flags + "build/maki"), 0);
  EXPECT_EQ(fs::last_write_time(tree_ / "build/cpu/packages.mk"), before);
  expect_end(make("-n LDFLAGS=-L/other build/maki"), 0);
  EXPECT_NE(fs::last_write_time(tree_ / "build/cpu/packages.mk"), before);
  EXPECT_NE(text_of(tree_ / "build/cpu/packages.flags"), remembered);
}

TEST_F(Makefile, TheUsersCcacheIsTheOnlyOne) {
  expect_end(make("-n build/maki"), 0, {"/ccache c++ -std"});
  const Result own = make("-n CXX='ccache c++' build/maki");
  expect_end(own, 0, {"\nccache c++ -std"});
  EXPECT_EQ(times(own.output, "/ccache"), 0) << own.output;
}

TEST_F(Makefile, CuFftOfTheUserComesBeforeThatOfTheToolkit) {
  for (const char* folder : {"maki/kernels", "cuda/bin", "cuda/include", "cuda/lib64", "fft/include", "fft/lib"})
    fs::create_directories(path(folder));
  for (const char* file : {"maki/kernels/fft.cu", "cuda/include/cuda_runtime.h", "cuda/include/cufft.h"})
    write(file, "");
  executable("cuda/bin/nvcc",
             "case $* in *--version*) echo release 13.0,;; *--list-gpu-arch*) echo compute_90;; esac\n");
  const std::string toolkit = "-n BACKEND=cuda NCCL=no CUDA_HOME=" + path("cuda") + " build/maki";
  const auto searched = [&](const std::string& place) {
    return "-L" + path(place) + " -Wl,-rpath," + path(place) + " ";
  };
  const Result without = expect_end(make(toolkit), 0, {searched("cuda/lib64") + "-lcudart_static -lcufft"});
  EXPECT_EQ(times(without.output, path("fft")), 0);
  expect_end(make("CUFFT_HOME=" + path("fft") + " " + toolkit), 0,
             {" -I" + path("fft/include") + " ",
              searched("fft/lib") + searched("cuda/lib64") + "-lcudart_static -lcufft"});
}

TEST_F(Makefile, CleanComesBeforeOtherGoals) {
  fs::create_directories(tree_ / "build/cpu");
  write("maki/build/old", "");
  expect_end(make("-n clean build/maki"), 0, {"rm -rf build\n", "-o build/maki"});
  EXPECT_TRUE(fs::exists(tree_ / "build/old"));
  expect_end(make("build/maki clean"), 0, {"rm -rf build\n"});
  EXPECT_FALSE(fs::exists(tree_ / "build/old"));
  EXPECT_TRUE(fs::exists(tree_ / "build/maki"));
  expect_end(make("clean"), 0);
  EXPECT_FALSE(fs::exists(tree_ / "build"));
}

TEST_F(Makefile, TheCommitIsOfTheRepositoryThatIsHere) {
  if (call_shell("git --version").code != 0) GTEST_SKIP() << "there is no git";
  const auto hash = [&] {
    expect_end(make("build/cpu/generated/git_hash.hpp"), 0);
    return text_of(tree_ / "build/cpu/generated/git_hash.hpp");
  };
  const auto commit_in = [&](const fs::path& folder) {
    expect_end(call_shell("cd " + folder.string() + " && git init -q && git add -A && " +
                          "git -c user.name=a -c user.email=a@b commit -q -m first"),
               0);
  };
  expect_contains(hash(), {"\"unknown\""});
  commit_in(directory_);
  expect_contains(hash(), {"\"unknown\""});
  commit_in(tree_);
  EXPECT_EQ(times(hash(), "unknown") + times(hash(), "-changed"), 0);
  write("maki/src/run.cpp", "// changed\n");
  expect_contains(hash(), {"-changed\""});
}

TEST_F(Makefile, OtherProcessorsAreRefused) {
  executable("uname", "echo aarch64\n");
  expect_end(make("build/maki"), 2, {"this machine is aarch64", "x86-64"});
  expect_end(make("clean"), 0);
}

TEST_F(Makefile, AnInstallationWithoutAHeaderIsAnError) {
  fs::create_directory(path("build"));
  write("build/maki", "");
  write("build/libmaki_wan.a", "");
  executable("c++", "case $* in *path.hpp*) echo no fmt >&2; exit 1;; esac\nexec g++ \"$@\"\n");
  const std::string call = script("install") + " " + path("build") + " " + path("installed") + " ''";
  expect_end(among_stand_ins("CXX=c++ WAN_LIBS=-lfmt VERSION=1 bash " + call), 1, {"no fmt"});
}

TEST_F(Makefile, AnInstallationCanBeReadByAll) {
  fs::create_directory(path("build"));
  write("build/maki", "");
  write("build/libmaki_wan.a", "");
  const Result installed = call_shell("umask 077; WAN_LIBS=-lfmt VERSION=1 bash " + script("install") + " " +
                                      path("build") + " '" + path("in stall") + "' ''");
  expect_end(installed, 0);
  EXPECT_EQ(call_shell("find '" + path("in stall") + "' ! -perm -444 -o -type d ! -perm 755").output, "");
  expect_contains(text_of(path("in stall/lib/pkgconfig/maki_wan.pc")),
                  {"/in\\ stall/include/maki ", "/in\\ stall/lib "});
}

}  // namespace
}  // namespace maki::test
