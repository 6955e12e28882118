#include "src/io/safe_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Advice to the user about a failed call.
std::string advice_for(int error, const std::string& directory) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return fmt::format("free space on the disk of '{}' or write somewhere else; nothing was left behind", directory);
    case EFBIG: return "raise the limit on file sizes (ulimit -f) or write somewhere else; nothing was left behind";
    case ENOENT: return fmt::format("make the directory '{}' first", directory);
    case ENOTDIR: return fmt::format("'{}' is not a directory; choose another output path", directory);
    case EACCES:
    case EPERM:
    case EROFS:
      return fmt::format("'{}' is not writable; change its permissions or choose another output path", directory);
    default: return fmt::format("check the disk and the directory '{}'", directory);
  }
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(fmt::format("cannot write '{}'", path), std::strerror(error), advice_for(error, directory_of(path)));
}

// rename() that does not replace a new file of that name, where the file system supports this.
int rename_exclusive(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (access(to, F_OK) == 0) {
    errno = EEXIST;
    return -1;
  }
  return std::rename(from, to);
}

[[noreturn]] void fail_exists(const std::string& path) {
  throw Error(fmt::format("output file '{}' exists", path), "",
              "remove it, choose another name, or allow overwriting (--overwrite; run.overwrite of a run)");
}

constexpr std::size_t kBlock = std::size_t{1} << 22;  // bytes that are read at once

}  // namespace

void sync_directory(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // the names are in place; some file systems cannot open directories
  (void)fsync(descriptor);
  close(descriptor);
}

SafeFile::SafeFile(std::string path, bool overwrite) : path_(std::move(path)), overwrite_(overwrite) {
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw Error(fmt::format("cannot write '{}'", path_), "it is a directory", "give the name of a file");
    }
    if (!overwrite_) fail_exists(path_);
    if (!S_ISREG(status.st_mode))
      throw Error(fmt::format("cannot write '{}'", path_), "it is a device or a pipe", "give the name of a file");
    path_ = std::filesystem::canonical(path_).string();  // not a link in place of its file
  }
  const std::string name = std::filesystem::path(path_).filename().string();
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = fmt::format("{}/.{}.{}.{}.partial", directory_of(path_), name, getpid(), attempt);
    descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) fail(path_, errno);
  }
}

SafeFile::SafeFile(SafeFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), overwrite_(other.overwrite_),
      descriptor_(std::exchange(other.descriptor_, -1)), buffer_(std::move(other.buffer_)) {}

SafeFile::~SafeFile() { remove_temporary(); }

void SafeFile::remove_temporary() noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

void SafeFile::reserve(std::uint64_t bytes) {
  if (bytes == 0 || fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) fail(path_, errno);
}

void SafeFile::write(const void* data, std::size_t bytes) {
  const char* first = static_cast<const char*>(data);
  buffer_.insert(buffer_.end(), first, first + bytes);
  if (buffer_.size() >= kBufferBytes) flush();
}

void SafeFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, errno);
    done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

void SafeFile::commit() {
  flush();
  if (fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail(path_, errno);
  const int closed = close(std::exchange(descriptor_, -1));
  if (closed != 0) fail(path_, errno);
  const int renamed =
      overwrite_ ? std::rename(temporary_.c_str(), path_.c_str()) : rename_exclusive(temporary_.c_str(), path_.c_str());
  if (renamed != 0) {
    if (errno == EEXIST) fail_exists(path_);
    fail(path_, errno);
  }
  temporary_.clear();
  sync_directory(directory_of(path_));
}

PositionedFile::PositionedFile(const std::string& temporary_path, std::string path) : path_(std::move(path)) {
  // Write-only: a network file system then writes back only the bytes of a page written here, so that pages shared by
  // two machines are right.
  descriptor_ = open(temporary_path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(path_, errno);
}

PositionedFile::~PositionedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void PositionedFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  const char* first = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pwrite(descriptor_, first + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, errno);
    done += static_cast<std::size_t>(n);
  }
  if (bytes >= kBufferBytes) settle(offset, bytes);
}

// Starts flushing the last bytes and waits for the earlier ones: the disk stays busy, few dirty pages wait for it, and
// no rank spends minutes in the last flush while others wait.
void PositionedFile::settle(std::uint64_t offset, std::size_t bytes) {
  constexpr unsigned kAndWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const auto sync = [&](std::uint64_t at, std::size_t length, unsigned how) {
    const int status = sync_file_range(descriptor_, static_cast<off_t>(at), static_cast<off_t>(length), how);
    if (status != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) fail(path_, errno);
  };
  sync(offset, bytes, SYNC_FILE_RANGE_WRITE);
  if (settling_bytes_ > 0) sync(settling_offset_, settling_bytes_, kAndWait);
  settling_offset_ = offset;
  settling_bytes_ = bytes;
}

void PositionedFile::finish() {
  if (fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail(path_, errno);
  if (close(std::exchange(descriptor_, -1)) != 0) fail(path_, errno);
}

void write_rows_at(PositionedFile& file, const RowSource& source, std::uint64_t count, std::uint64_t address) {
  std::vector<unsigned char> bytes;
  for (std::uint64_t first = 0; first < count; first += kRowsAtOnce) {
    const std::uint64_t rows = std::min<std::uint64_t>(kRowsAtOnce, count - first);
    bytes.resize(rows * source.row_bytes());
    source.fill(first, rows, bytes.data());
    file.write_at(address + first * source.row_bytes(), bytes.data(), bytes.size());
  }
}

LineFile::LineFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, errno);
}

LineFile::~LineFile() { close(descriptor_); }

void LineFile::add(std::string_view line) {
  waiting_.append(line) += '\n';
  write_waiting();
}

void LineFile::write_waiting() {
  while (written_ < waiting_.size()) {
    const ssize_t n = ::write(descriptor_, waiting_.data() + written_, waiting_.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      problem_ = errno;
      if (problem_ == EFBIG || waiting_.size() > most_waiting) settle();
      return;
    }
    written_ += static_cast<std::size_t>(n);
    const std::size_t lines = std::string_view(waiting_).substr(0, written_).rfind('\n') + 1;  // npos + 1 = 0
    waiting_.erase(0, lines);
    written_ -= lines;
  }
  problem_ = 0;
}

bool LineFile::reopen(std::string_view head) {
  if (leads_to(path_, descriptor_)) return false;
  const int again = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (again < 0) return false;
  close(std::exchange(descriptor_, again));
  written_ = 0;
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && status.st_size == 0) waiting_.insert(0, head);
  write_waiting();
  return true;
}

std::string LineFile::news() {
  if (std::exchange(told_, problem_) == problem_) return "";
  if (problem_ == 0) return fmt::format("'{}' can be written again, and has all its lines", path_);
  return fmt::format("cannot write '{}' ({}): its lines wait in memory until that is possible", path_,
                     std::strerror(problem_));
}

void LineFile::settle() {
  // Pipes and the like cannot be synced.
  if (problem_ == 0 && fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) problem_ = errno;
  if (problem_ == 0) return;
  const auto lines = std::count(waiting_.begin(), waiting_.end(), '\n');
  throw Error(fmt::format("cannot write '{}'", path_),
              fmt::format("{}; {} at its end are missing", std::strerror(problem_),
                          lines > 0 ? fmt::format("{} lines", lines) : "lines"),
              problem_ == EFBIG
                  ? "raise the limit on file sizes (ulimit -f), and go on from the last restart (maki resume)"
                  : "see whether the disk is full, and go on from the last restart (maki resume)");
}

bool leads_to(const std::string& path, int descriptor) {
  struct stat named {};
  struct stat opened {};
  if (stat(path.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return fstat(descriptor, &opened) == 0 && opened.st_ino == named.st_ino;
}

void ensure_output_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  const int reason = error.value();
  const std::filesystem::file_status found = std::filesystem::status(path, error);  // throws nothing, unlike exists()
  if (!std::filesystem::is_directory(found)) {
    const bool file = std::filesystem::exists(found);
    throw Error(fmt::format("cannot make the output directory '{}'", path),
                file ? "a file has that name" : std::strerror(reason ? reason : ENOTDIR),
                file ? "remove the file or choose another directory" : advice_for(reason, directory_of(path)));
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    throw Error(fmt::format("cannot write to the output directory '{}'", path), std::strerror(errno),
                "change its permissions or choose another directory");
  }
}

std::string Checksum::text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes.data(), bytes.size());
  return checksum.text();
}

std::vector<std::string> names_in(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw Error(fmt::format("cannot read the directory '{}'", directory), error.message(),
                "see to its permissions, and to the disk");
  return names;
}

std::string bytes_of_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
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
