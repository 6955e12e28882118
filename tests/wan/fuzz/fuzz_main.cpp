// The parsers under libFuzzer (clang): MAKI_PARSER names the one. Built and run by `make fuzz`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/wan/fuzz/parsers.hpp"

using namespace maki::wan::fuzz;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

const Parser* chosen = nullptr;

void choose() {
  const char* name = std::getenv("MAKI_PARSER");
  for (const Parser& parser : parsers())
    if (name != nullptr && std::strcmp(name, parser.name) == 0) chosen = &parser;
  if (chosen != nullptr) return;
  for (const Parser& parser : parsers()) std::puts(parser.name);
  std::exit(name == nullptr ? 0 : 1);
}

// Good messages to begin with.
void write_samples(const std::filesystem::path& folder) {
  int number = 0;
  for (const Block& sample : chosen->samples())
    std::ofstream(folder / ("sample" + std::to_string(number++)), std::ios::binary)
        .write(reinterpret_cast<const char*>(sample.data()), static_cast<std::streamsize>(sample.size()));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  choose();
  if (const char* folder = std::getenv("MAKI_SAMPLES")) write_samples(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->feed(std::as_bytes(std::span(data, size)));
  return 0;
}

// Most changed messages get their right checksum, or nothing behind it would ever be reached.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const std::size_t changed = LLVMFuzzerMutate(data, size, most);
  if (chosen->sealed && seed % 4 != 0) seal(std::as_writable_bytes(std::span(data, changed)));
  return changed;
}
