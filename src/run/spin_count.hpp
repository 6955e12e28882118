// How long a thread of OpenMP that waits for the others keeps its core.
#pragma once

namespace maki {

// libgomp's threads spin for milliseconds at a barrier before they sleep. On a core that another program shares, that is
// time in which the thread that all wait for does not run: a small run took fifty times as long (bench/NOTES.md). This
// sets GOMP_SPINCOUNT, which libgomp reads before main(), and starts the program once more in its own place. Returns
// where the user has set it or OMP_WAIT_POLICY, and where the program cannot be started anew: then it spins as ever.
// To be called first of all; argv is main's.
void bound_spinning(char** argv);

}  // namespace maki
