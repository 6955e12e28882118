#include "kernels/tree/walk_cuda.cuh"

namespace maki {

double walk_bytes(double particles) {
  constexpr double members = 45, at_a_time = 48 * 132;  // particles of a group; groups on a large GPU
  return 4.0 * sizeof(cuda::walk::StagedOctet) * cuda::walk::kFirstSlice * std::min(at_a_time, particles / members);
}

void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists) {
  cuda::walk_tree(stream, tree, options, request, lists);
}

QueuedWalk queue_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, Results& results) {
  QueuedWalk walk;
  walk.request = request;
  walk.record = results.make<WalkRecord>(stream);
  cuda::begin_walk(stream, {tree, options, lists}, request, walk.record.place, walk.refused);
  return walk;
}

bool finish_walk(const Stream& stream, Octree& tree, const WalkOptions& options, QueuedWalk& walk,
                 InteractionLists& lists, Results& results) {
  return cuda::end_walk(stream, {tree, options, lists}, walk.request, results[walk.record], walk.refused);
}

}  // namespace maki
