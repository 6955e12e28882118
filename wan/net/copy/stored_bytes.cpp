#include "wan/net/copy/stored_bytes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace maki::wan::copy {

// A file system that knows no holes says that all is data.
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
