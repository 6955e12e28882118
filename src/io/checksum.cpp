#include "src/io/checksum.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 22;  // bytes that are read at once

}  // namespace

std::string Checksum::text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes.data(), bytes.size());
  return checksum.text();
}

std::string checksum_of_file(const std::string& path) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) throw Error(fmt::format("cannot read '{}'", path), std::strerror(errno), "");
  Checksum checksum;
  std::vector<char> block(kBlock);
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get()))
    checksum.add(block.data(), count);
  if (std::ferror(file.get())) throw Error(fmt::format("cannot read '{}'", path), std::strerror(errno), "");
  return checksum.text();
}

}  // namespace maki
