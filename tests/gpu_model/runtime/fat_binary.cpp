// The format of nvcc's fat binaries: a header, then entries, each a header and the code of one architecture.
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "tests/gpu_model/runtime/modules.hpp"

namespace gpu_model {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kZstd = 0x8000, kOtherCompression = 0x2000;

struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // of what follows
};

struct EntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // of the code, with padding
  std::uint32_t compressed_bytes, options;
  std::uint16_t minor, major;
  std::uint32_t architecture;
  std::uint32_t name, name_bytes;
  std::uint64_t flags, reserved, whole_bytes;  // the last: of compressed code
};
static_assert(sizeof(EntryHeader) == 64);

template <class T>
T read(const char* from) {
  T t;
  std::memcpy(&t, from, sizeof t);
  return t;
}

std::string text_of(const EntryHeader& entry, const char* code) {
  std::string text;
  if (entry.flags & kZstd) {
    text.resize(entry.whole_bytes);
    const std::size_t n = ZSTD_decompress(text.data(), text.size(), code, entry.compressed_bytes);
    if (ZSTD_isError(n))
      throw std::runtime_error(std::string("PTX that cannot be decompressed: ") + ZSTD_getErrorName(n));
    text.resize(n);
  } else if (entry.flags & kOtherCompression) {
    throw std::runtime_error("the PTX is compressed in a way that is not known: compile with nvcc -no-compress");
  } else {
    text.assign(code, entry.bytes);
  }
  return text.substr(0, text.find('\0'));
}

}  // namespace

Image image_in(const void* fat_binary) {
  const char* at = static_cast<const char*>(fat_binary);
  const auto header = read<Header>(at);
  if (header.magic != kMagic) throw std::runtime_error("a fat binary of a format that is not known");
  at += header.header_bytes;
  const char* const end = at + header.bytes;
  const int own = gpu().major * 10 + gpu().minor;
  const char* best = nullptr;
  int architecture = 0;
  while (at < end) {
    const auto entry = read<EntryHeader>(at);
    const int found = static_cast<int>(entry.architecture);
    const bool better = !best || (found <= own ? architecture > own || found > architecture
                                               : architecture > own && found < architecture);
    if (entry.kind == kPtx && better) best = at, architecture = found;
    at += entry.header_bytes + entry.bytes;
  }
  if (!best) throw std::runtime_error("there is no PTX: compile with nvcc -gencode arch=compute_90,code=compute_90");
  const auto entry = read<EntryHeader>(best);
  return {text_of(entry, best + entry.header_bytes), architecture, {}};
}

}  // namespace gpu_model
