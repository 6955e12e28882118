#include "wan/net/copy/digest.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

namespace maki::wan::copy {

// ---- of bytes ------------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kBlock = 64 << 10;
constexpr std::array<std::byte, kBlock> kZeros{};

bool all_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

Digester::Digester() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

std::uint64_t Digester::block_start() const { return position_ - position_ % kBlock; }

void Digester::feed(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }

// Begins to hash a block, at its first non-zero byte: its offset, unless it follows the last hashed one, and its
// leading zeros.
void Digester::begin_block() {
  const std::uint64_t start = block_start();
  if (fed_ > start) return;
  if (fed_ != start) feed(std::as_bytes(std::span(&start, 1)));
  feed(std::span(kZeros).first(position_ - start));
}

void Digester::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), kBlock - position_ % kBlock));
    bytes = bytes.subspan(part.size());
    const bool counts = fed_ > block_start() || !all_zero(part);
    if (counts) {
      begin_block();
      feed(part);
    }
    position_ += part.size();
    if (counts) fed_ = position_;
  }
}

void Digester::add_zeros(std::uint64_t count) {
  if (fed_ > block_start()) {
    const std::uint64_t rest = std::min(count, kBlock - position_ % kBlock);
    feed(std::span(kZeros).first(rest));
    fed_ = position_ += rest;
    count -= rest;
  }
  position_ += count;
}

Checksum Digester::checksum() const {
  struct {
    XXH128_canonical_t bytes;
    std::uint64_t size;
  } all{};
  XXH128_canonicalFromHash(&all.bytes, XXH3_128bits_digest(state_.get()));
  all.size = position_;
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(&all, sizeof all));
  Checksum out;
  static_assert(sizeof canonical == sizeof out && sizeof all == sizeof out + 8);
  std::memcpy(out.data(), &canonical, sizeof out);
  return out;
}

// ---- of files ------------------------------------------------------------------------------------------------------

// A file system without support for holes reports all as data.
Extent next_data(int file, std::uint64_t at, std::uint64_t size) {
  const off_t data = lseek(file, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? Extent{size, size} : Extent{at, size};
  const std::uint64_t begin = std::min(size, static_cast<std::uint64_t>(data));
  const off_t hole = lseek(file, static_cast<off_t>(begin), SEEK_HOLE);
  return {begin, hole < 0 ? size : std::min(size, static_cast<std::uint64_t>(hole))};
}

std::uint64_t digest_file(int file, std::uint64_t size, Digester& digester, const Check& check) {
  struct stat status;
  if (fstat(file, &status) != 0) return 0;
  size = std::min(size, static_cast<std::uint64_t>(status.st_size));
  std::vector<std::byte> block(1 << 20);
  std::uint64_t at = 0;
  for (Extent data; at < size;) {
    check();
    if (at == data.end) {
      data = next_data(file, at, size);
      digester.add_zeros(data.begin - at);
      at = data.begin;
      continue;
    }
    errno = 0;
    const ssize_t got =
        pread(file, block.data(), std::min<std::uint64_t>(block.size(), data.end - at), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return at;
    digester.add({block.data(), static_cast<std::size_t>(got)});
    at += static_cast<std::uint64_t>(got);
  }
  errno = 0;
  return at;
}

}  // namespace maki::wan::copy
