#include "src/lightcone/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

[[noreturn]] void fail(const std::string& path, const char* what) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT;
  throw Error(fmt::format("cannot {} '{}'", what, path), std::strerror(reason),
              full ? "free space on that disk, and go on from the last restart (maki resume)" : "");
}

// Shell and rank of a spool's name, -1 of other names.
std::array<int, 2> numbers_of(const std::string& name) {
  static const std::regex known(R"(conesnap_(\d{3,9})\.(\d{1,9})\.spool)");
  std::smatch match;
  if (!std::regex_match(name, match, known)) return {-1, -1};
  return {std::stoi(match[1]), std::stoi(match[2])};
}

// A descriptor that is closed at the end, with an error where that fails.
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

}  // namespace

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

void read(const std::string& path, std::vector<ShellParticle>& to) {
  const std::size_t records = bytes(path) / sizeof(ShellParticle), before = to.size();
  if (records == 0) return;
  to.resize(before + records);
  Descriptor file(path, O_RDONLY);
  char* const first = reinterpret_cast<char*>(to.data() + before);
  const std::size_t all = records * sizeof(ShellParticle);
  for (std::size_t done = 0; done < all;) {
    const ssize_t n = ::read(file, first + done, all - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "read");
    if (n == 0) throw Error(fmt::format("cannot read '{}'", path), "it has been cut off");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace maki::spool
