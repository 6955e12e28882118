#include "kernels/tree/walk_cuda.cuh"

void maki::walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                     InteractionLists& lists) {
  return cuda::walk_tree(stream, tree, options, request, lists);
}
