// Particles of a shell on the disk of each rank until the shell is complete: files of records without a head, to which
// steps append, so that a restart needs no more than their lengths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/lightcone/cone_shells.hpp"

namespace maki::spool {

// "conesnap_003.2.spool": of shell 3 and rank 2.
std::string name_of(std::size_t shell, int rank);
// The shell and the rank of such a name; -1 where it is another one.
int shell_of(const std::string& name);
int rank_of(const std::string& name);

// Bytes of the file; 0 where there is none.
std::uint64_t bytes(const std::string& path);
// Appends records; the file is made with the first ones. Throws Error.
void append(const std::string& path, const std::vector<ShellParticle>& records);
// Flushes the file, where there is one, to the disk. Throws Error.
void sync(const std::string& path);
// Cuts the file to a length, and removes it where that is 0. Throws Error.
void cut(const std::string& path, std::uint64_t bytes);
// Adds the records of the file, where there is one, to `to`. Throws Error.
void read(const std::string& path, std::vector<ShellParticle>& to);

}  // namespace maki::spool
