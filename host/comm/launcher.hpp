// Which launcher started this process, by what it leaves in the environment.
#pragma once

#include <functional>

namespace maki {

struct Launcher {
  bool starts_mpi = false;  // there are ranks to meet: MPI has to be started
  int ranks = 0;            // as many as the launcher says; 0: it does not say
};

// `variable` gives an environment variable's value, or null. Throws Error where srun started several tasks without a
// process management interface: MPI would take each of them for the only one.
Launcher find_launcher(const std::function<const char*(const char*)>& variable);

}  // namespace maki
