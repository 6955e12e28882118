// Who is still there, when something that was waited for did not come: every rank that waits answers, so that those
// named are the ranks at fault and not the ones that wait for them in turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace maki::mpi {

// Collective over the job, once MPI runs.
void open_survivor_check();
// Another rank has given up: this one has to answer, by check_survivors().
bool survivor_check_is_called();
// Tells all ranks that this one is here and waits a moment for theirs. True for each rank of the job that was heard.
std::vector<bool> check_survivors();
// Whether this rank is the one that speaks for all: the lowest heard. Before any check of survivors: rank 0.
bool speaks_for_all();
// "rank 2", "ranks 2, 3 and 5", "ranks 2, 3, 5 and 12 more"; behind each number what `more` says of it.
std::string name_ranks(const std::vector<int>& ranks, const std::function<std::string(int)>& more = {});

}  // namespace maki::mpi
