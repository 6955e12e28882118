// The job as a whole: how it ends when one rank cannot go on.
#pragma once

#include <string>

namespace maki {

// Prints "maki: error: rank R: message" and ends all ranks (MPI_Abort); in a process alone, the message without a rank,
// and exit code 1. Where all ranks fail alike, one of them speaks: after a timeout the lowest rank that is still heard
// of, else rank 0; the others give it a moment.
[[noreturn]] void abort_job(const std::string& message);

// Whether this process has started MPI.
bool under_mpi();

// The MPI library, as it describes itself in one line.
std::string mpi_library();

}  // namespace maki
