// Files with the particles of a shell, one for each rank, until the shell is complete: records without a header, to
// which steps append, so that a restart needs only their lengths and checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/io/checksum.hpp"
#include "src/lightcone/cone_shells.hpp"

namespace maki::spool {

// "conesnap_003.2.spool": of shell 3 and rank 2.
std::string name_of(std::size_t shell, int rank);
// The shell and the rank of such a name; -1 for any other name.
int shell_of(const std::string& name);
int rank_of(const std::string& name);

// The length of a spool, and its checksum.
struct Mark {
  std::uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const Mark&) const = default;
};

// A mark that follows appended records.
class RunningMark {
 public:
  void add(const void* data, std::size_t bytes);
  void add(const std::vector<ShellParticle>& records) { add(records.data(), records.size() * sizeof(ShellParticle)); }
  Mark mark() const { return {bytes_, sum_.text()}; }

 private:
  std::uint64_t bytes_ = 0;
  Checksum sum_;
};

// Reads the first bytes of a file. Throws Error where it is shorter than `then` or its checksum differs.
RunningMark reopen(const std::string& path, const Mark& then);

// Bytes of the file; 0 where there is none.
std::uint64_t bytes(const std::string& path);
// Appends records; the file is made with the first ones. Throws Error.
void append(const std::string& path, const std::vector<ShellParticle>& records);
// Flushes the file, where there is one, to the disk. Throws Error.
void sync(const std::string& path);
// Truncates the file, and removes it where `bytes` is 0. Throws Error.
void cut(const std::string& path, std::uint64_t bytes);
// Adds the records of the file to `to`. Throws Error, also where the file differs from `all`.
void read(const std::string& path, const Mark& all, std::vector<ShellParticle>& to);

}  // namespace maki::spool
