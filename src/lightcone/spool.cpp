#include "src/lightcone/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <regex>
#include <utility>

#include "kernels/error.hpp"

namespace maki::spool {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = std::uint64_t{1} << 22;

[[noreturn]] void fail(const std::string& path, const char* what) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT;
  throw Error(fmt::format("cannot {} '{}'", what, path), std::strerror(reason),
              full ? "free space on that disk, and go on from the last restart (maki resume)" : "");
}

// Shell and rank of a spool's name, -1 for other names.
std::array<int, 2> numbers_of(const std::string& name) {
  static const std::regex known(R"(conesnap_(\d{3,9})\.(\d{1,9})\.spool)");
  std::smatch match;
  if (!std::regex_match(name, match, known)) return {-1, -1};
  return {std::stoi(match[1]), std::stoi(match[2])};
}

// A file descriptor; closing it throws Error on failure.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path), number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail(path, "open");
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }
  void close() {
    if (::close(std::exchange(number_, -1)) != 0) fail(path_, "write");
  }

 private:
  std::string path_;
  int number_;
};

// Reads `bytes` bytes at the present position into `to`.
void read_bytes(int file, const std::string& path, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(file, static_cast<char*>(to) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "read");
    if (n == 0)
      throw Error(fmt::format("'{}' has been cut off", path), fmt::format("{} bytes are missing", bytes - done));
    done += static_cast<std::size_t>(n);
  }
}

void require(const std::string& path, const Mark& found, const Mark& then) {
  if (found == then) return;
  throw Error(fmt::format("'{}' is damaged", path), fmt::format("its first {} bytes have another checksum", then.bytes),
              "go on from the last restart that is whole (maki resume)");
}

}  // namespace

void RunningMark::add(const void* data, std::size_t bytes) {
  sum_.add(data, bytes);
  bytes_ += bytes;
}

RunningMark reopen(const std::string& path, const Mark& then) {
  RunningMark found;
  if (then.bytes == 0) return found;
  const Descriptor file(path, O_RDONLY);
  std::vector<char> block(std::min<std::uint64_t>(kBlock, then.bytes));
  for (std::uint64_t left = then.bytes; left > 0; left -= block.size()) {
    block.resize(std::min<std::uint64_t>(left, block.size()));
    read_bytes(file, path, block.data(), block.size());
    found.add(block.data(), block.size());
  }
  require(path, found.mark(), then);
  return found;
}

std::string name_of(std::size_t shell, int rank) { return fmt::format("conesnap_{:03}.{}.spool", shell, rank); }

int shell_of(const std::string& name) { return numbers_of(name)[0]; }
int rank_of(const std::string& name) { return numbers_of(name)[1]; }

std::uint64_t bytes(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(path, none);
  return none ? 0 : static_cast<std::uint64_t>(size);
}

void append(const std::string& path, const std::vector<ShellParticle>& records) {
  if (records.empty()) return;
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
  const char* const first = reinterpret_cast<const char*>(records.data());
  const std::size_t all = records.size() * sizeof(ShellParticle);
  for (std::size_t done = 0; done < all;) {
    const ssize_t n = write(file, first + done, all - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write");
    done += static_cast<std::size_t>(n);
  }
  file.close();
}

void sync(const std::string& path) {
  if (!fs::exists(path)) return;
  Descriptor file(path, O_WRONLY);
  if (fsync(file) != 0 && errno != EINVAL && errno != EROFS) fail(path, "write");
  file.close();
}

void cut(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  if (bytes == 0)
    fs::remove(path, error);
  else
    fs::resize_file(path, bytes, error);
  if (error) throw Error(fmt::format("cannot cut '{}' to {} bytes", path, bytes), error.message());
}

void read(const std::string& path, const Mark& all, std::vector<ShellParticle>& to) {
  const std::size_t before = to.size();
  to.resize(before + all.bytes / sizeof(ShellParticle));
  RunningMark found;
  if (all.bytes > 0) read_bytes(Descriptor(path, O_RDONLY), path, to.data() + before, all.bytes);
  found.add(to.data() + before, all.bytes);
  require(path, found.mark(), all);
}

}  // namespace maki::spool
