// A run that is watched: reads on as lines are written.
#pragma once

#include <cstdint>
#include <string>

#include "src/report/run_records.hpp"

namespace maki::report {

// What can be seen of a run from outside, beside its lines.
struct Signs {
  double silent = 0;  // seconds since the last line was written
  bool gone = false;  // it ran on this machine, and no process holds its directory any more
  double now = 0;     // seconds since 1970, for the expected end
};

class Follower {
 public:
  // Throws Error where there is no such directory. The run need not have begun.
  explicit Follower(std::string directory);

  // Reads what has come since: at first the beginning and the last megabyte. Where the file was begun anew or cut (maki
  // resume), it is read again. True where there was a new line.
  bool read_on();
  const RunRecords& records() const { return reader_.records(); }
  bool begun() const { return !records().beginnings.empty(); }
  Signs signs() const;

 private:
  void start();

  std::string directory_, path_;
  RecordReader reader_;
  std::uint64_t read_ = 0;  // bytes
  std::uint64_t inode_ = 0;
};

}  // namespace maki::report
