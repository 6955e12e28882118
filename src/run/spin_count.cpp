#include "src/run/spin_count.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace maki {
namespace {

constexpr const char* kVariable = "GOMP_SPINCOUNT";
constexpr const char* kCount = "2000";

}  // namespace

void bound_spinning(char** argv) {
  if (std::getenv(kVariable) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // With rights of its own a program would lose them or be fooled; started by the dynamic linker's name, the file that
  // runs is the linker.
  if (getauxval(AT_SECURE) != 0 || getauxval(AT_BASE) == 0) return;
  // By its real name, which process lists show; there is none without /proc, or where the file has been replaced.
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure || setenv(kVariable, kCount, 1) != 0) return;
  execv(program.c_str(), argv);
  unsetenv(kVariable);
}

}  // namespace maki
