// Output files, which appear whole or not at all, and checksums of files.
//
// A SafeFile is written under a temporary name in the directory of its final name, flushed to the disk, and renamed
// when it is complete. If writing ends early, the temporary file is removed, so that no incomplete file can be read.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

class SafeFile {
 public:
  // Makes the temporary file. Throws Error where `path` exists (unless `overwrite`), is a directory, or lies in a
  // directory that is missing or cannot be written to.
  explicit SafeFile(std::string path, bool overwrite = false);
  ~SafeFile();
  SafeFile(SafeFile&& other) noexcept;
  SafeFile(const SafeFile&) = delete;
  SafeFile& operator=(const SafeFile&) = delete;
  SafeFile& operator=(SafeFile&&) = delete;

  const std::string& path() const { return path_; }
  // For libraries that open files by name. They must have closed the file before commit().
  const std::string& temporary_path() const { return temporary_; }

  // Reserves space on the disk for the first `bytes`, where the file system can do that at once, so that later writes
  // cannot meet a full disk. Throws Error.
  void reserve(std::uint64_t bytes);

  // Appends bytes; buffered. Throws Error when the disk is full or fails.
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Flushes the file, renames it to its final name, and flushes the directory. Throws Error.
  void commit();

 private:
  void flush();
  void remove_temporary() noexcept;

  std::string path_, temporary_;
  bool overwrite_ = false;
  int descriptor_ = -1;
  std::vector<char> buffer_;
};

// One of several writers of a file, each at its own offsets: the ranks of a job, which write into the temporary file of
// a SafeFile that one of them holds. All have to finish before it commits.
class PositionedFile {
 public:
  // Opens the existing `temporary_path`; messages name its final `path`. Throws Error.
  PositionedFile(const std::string& temporary_path, std::string path);
  ~PositionedFile();
  PositionedFile(const PositionedFile&) = delete;
  PositionedFile& operator=(const PositionedFile&) = delete;

  // Throws Error when the disk is full or fails.
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  // Flushes to the disk and closes. Throws Error.
  void finish();

 private:
  void settle(std::uint64_t offset, std::size_t bytes);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t settling_offset_ = 0;  // bytes from here on are being flushed to the disk
  std::size_t settling_bytes_ = 0;
};

// Rows of a table that are read or written at once.
inline constexpr std::size_t kRowsAtOnce = std::size_t{1} << 20;

// The rows of one table, as bytes of a file.
struct RowSource {
  std::size_t columns, width;  // numbers a row, bytes a number
  // Puts this writer's rows [first, first + count) at `to`.
  std::function<void(std::size_t first, std::size_t count, unsigned char* to)> fill;
  std::size_t row_bytes() const { return columns * width; }
};

// Numbers of type T, given by value(i, column).
template <class T, class Value>
RowSource row_source(std::size_t columns, Value value) {
  return {columns, sizeof(T), [columns, value](std::size_t first, std::size_t count, unsigned char* to) {
            T* const numbers = reinterpret_cast<T*>(to);
            for (std::size_t i = 0; i < count; ++i)
              for (std::size_t k = 0; k < columns; ++k) numbers[i * columns + k] = static_cast<T>(value(first + i, k));
          }};
}

// Writes this writer's `count` rows from `address` on. Throws Error.
void write_rows_at(PositionedFile& file, const RowSource& source, std::uint64_t count, std::uint64_t address);

// A file of lines that grows during a run. Lines that find no room on the disk wait in memory until there is some, so
// that a disk that is full for a while costs no line and leaves no half one.
class LineFile {
 public:
  // Adds to the end of the file, which is made where it is missing. Throws Error where it cannot be opened.
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Writes what waits, then `line` and a line feed. Throws Error where the file has reached a limit on sizes of files,
  // and where more than `most_waiting` bytes wait.
  void add(std::string_view line);
  // Opens the file of that name anew where the open file has lost it (renamed, removed, file system mounted anew). An
  // empty file first gets `head`, whole lines. Returns whether it was opened anew.
  bool reopen(std::string_view head);
  // A message for the user: since the last call lines began to wait (and why), or have all been written; else "".
  std::string news();
  bool waits() const { return problem_ != 0; }
  // Brings the lines to the disk. Throws Error where lines still wait, or where the disk refuses them.
  void settle();

  static constexpr std::size_t most_waiting = std::size_t{16} << 20;

 private:
  void write_waiting();

  std::string path_;
  int descriptor_ = -1;
  std::string waiting_;         // whole lines
  std::size_t written_ = 0;     // bytes of the first one that are in the file
  int problem_ = 0, told_ = 0;  // errno for which lines wait, now and at the last news; 0: none waits
};

// Whether the name still leads to the open file; true where its file system does not answer.
bool leads_to(const std::string& path, int descriptor);

// Makes the directory and its parents if missing. Throws Error where that fails, where a file has that name, or where
// the directory cannot be written to.
void ensure_output_directory(const std::string& path);

// Flushes the names in a directory to the disk, where the file system can do that.
void sync_directory(const std::string& directory);

// The checksum of bytes that come one after another: XXH3, 64 bits, as 16 hexadecimal digits.
class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  std::string text() const;

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

std::string checksum_of(std::string_view bytes);
// The names in a directory; none of one that is not there. Throws Error where it cannot be read to its end.
std::vector<std::string> names_in(const std::string& directory);
// The bytes of a file, as far as they can be read; none of a file that is not there.
std::string bytes_of_file(const std::string& path);
// Throws Error where the file cannot be read.
std::string checksum_of_file(const std::string& path);

}  // namespace maki
