// The linker keeps one copy of a function that several units define. A copy compiled for AVX-512, or with -ffast-math,
// must not become everyone's: units for one instruction set may define no such (weak) functions at all.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  pclose(pipe);
  return text;
}

bool is_instruction_set_unit(const std::string& name) {
  for (const char* end : {"_avx512.cpp.o", "_avx2.cpp.o", "_scalar.cpp.o"})
    if (name.ends_with(end)) return true;
  return false;
}

TEST(Symbols, InstructionSetUnitsShareNoCode) {
#if !defined(MAKI_OBJECT_DIR)
  GTEST_SKIP() << "the build does not say where its object files are";
#else
  namespace fs = std::filesystem;
  const fs::path kernels = fs::path(MAKI_OBJECT_DIR) / "kernels";
  if (!fs::exists(kernels)) GTEST_SKIP() << "no object files in " << kernels;
  if (output_of("nm --version 2>/dev/null").empty()) GTEST_SKIP() << "nm is not installed";
  int units = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(kernels)) {
    if (!is_instruction_set_unit(file.path().filename().string())) continue;
    ++units;
    const std::string weak = output_of("nm -C --defined-only '" + file.path().string() + "' | grep ' [WVu] '");
    EXPECT_EQ(weak, "") << file.path();
  }
  if (units == 0) GTEST_SKIP() << "no units for one instruction set in " << kernels;
#endif
}

}  // namespace
