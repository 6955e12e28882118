#include "kernels/tree/walk.hpp"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "kernels/device/instruction_set.hpp"
#include "kernels/tree/walk_cpu.hpp"

namespace maki {
namespace {

using WalkGroup = bool (&)(const WalkTree&, const Group&, WalkOutput&);

// What one thread has found so far.
struct ThreadLists {
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> groups;         // that these words belong to, in order
  std::vector<std::uint32_t> cells, leaves;  // room for one group
  std::uint64_t redone = 0;
};

void walk_one(WalkGroup walk, const WalkTree& tree, const WalkRequest& request, std::uint32_t item, ListRange* ranges,
              ThreadLists& mine) {
  const std::uint32_t g = request.selected ? request.selected[item] : request.begin + item;
  WalkOutput out{mine.cells.data(), mine.leaves.data(), static_cast<std::uint32_t>(mine.cells.size()), 0, 0};
  while (!walk(tree, request.groups[g], out)) {
    if (!mine.cells.empty()) ++mine.redone;
    mine.cells.resize(mine.cells.size() * 2 + 1024);
    mine.leaves.resize(mine.cells.size());
    out = {mine.cells.data(), mine.leaves.data(), static_cast<std::uint32_t>(mine.cells.size()), 0, 0};
  }
  ranges[g] = {mine.words.size(), out.cell_words, out.leaf_words};  // begin: within this thread's words, for now
  mine.words.insert(mine.words.end(), out.cells, out.cells + out.cell_words);
  mine.words.insert(mine.words.end(), out.leaves, out.leaves + out.leaf_words);
  mine.groups.push_back(g);
}

// Walks for the items [begin, end). Throws what a thread threw: std::bad_alloc.
struct Items {
  std::uint32_t begin, end;
};
void walk_some(WalkGroup walk, const WalkTree& tree, const WalkRequest& request, Items items, std::uint32_t scratch,
               ListRange* ranges, std::vector<ThreadLists>& threads) {
  std::exception_ptr failure;
#pragma omp parallel
  {
    ThreadLists& mine = threads[static_cast<std::size_t>(omp_get_thread_num())];
    const auto keep_failure = [&](auto work) {
      try {
        work();
      } catch (...) {
#pragma omp critical(walk_failure)
        failure = std::current_exception();
      }
    };
    keep_failure([&] {
      if (mine.cells.size() < scratch) mine.cells.resize(scratch);
      mine.leaves.resize(mine.cells.size());
    });
#pragma omp for schedule(dynamic, 16)
    for (std::uint32_t item = items.begin; item < items.end; ++item)
      keep_failure([&] { walk_one(walk, tree, request, item, ranges, mine); });
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

double walk_bytes(double) { return 0; }

WalkTree view_of(Octree& tree, const WalkOptions& options) {
  return {tree.topology(), tree.geometry.view(), options.rule(), options.r_cut > 0, options.small_cell};
}

void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists) {
  const WalkGroup walk = of_instruction_set(scalar::walk_group, avx2::walk_group, avx2::walk_group);
  const WalkTree view = view_of(tree, options);
  lists.begin_walk(stream, request);
  ListRange* ranges = lists.ranges.data();
  std::vector<ThreadLists> threads(static_cast<std::size_t>(omp_get_max_threads()));
  // A part of the groups at a time, so that few words are held twice.
  const std::uint32_t at_once = std::max<std::uint32_t>(4096, request.count / 8 + 1);
  const std::uint64_t before = lists.used;
  for (std::uint32_t done = 0; done < request.count;) {
    const std::uint32_t end = done + std::min(at_once, request.count - done);
    walk_some(walk, view, request, {done, end}, lists.scratch, ranges, threads);
    std::uint64_t total = lists.used;
    std::vector<std::uint64_t> base;
    for (ThreadLists& mine : threads) {
      base.push_back(total);
      total += mine.words.size();
      lists.redone += std::exchange(mine.redone, 0);
      lists.scratch = std::max(lists.scratch, static_cast<std::uint32_t>(mine.cells.size()));
    }
    // Where the words of this part have no room, room for those of all that is left, too.
    const double foreseen = static_cast<double>(total - before) / end * request.count;
    lists.reserve(stream, total > lists.words.capacity()
                              ? std::max(total, before + static_cast<std::uint64_t>(foreseen))
                              : total);
    lists.words.resize(lists.words.capacity());
#pragma omp parallel for schedule(static, 1)
    for (std::size_t t = 0; t < threads.size(); ++t) {
      ThreadLists& mine = threads[t];
      std::copy(mine.words.begin(), mine.words.end(), lists.words.data() + base[t]);
      for (const std::uint32_t g : mine.groups) ranges[g].begin += base[t];
      mine.words.clear();
      mine.groups.clear();
    }
    lists.used = total;
    done = end;
  }
  lists.end_walk(request, lists.used);
}

// A walk on the CPU is done when it is called.
QueuedWalk queue_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, Results&) {
  walk_tree(stream, tree, options, request, lists);
  QueuedWalk done;
  done.request = request;
  return done;
}

bool finish_walk(const Stream&, Octree&, const WalkOptions&, QueuedWalk&, InteractionLists&, Results&) { return true; }

void flag_stale_groups(const Stream&, Octree& tree, const StaleCriterion& criterion, const ListView& lists,
                       std::uint32_t* flags) {
  const CellGeometryView g = tree.geometry.view();
  const std::uint32_t* const count = tree.count.data();
#pragma omp parallel for schedule(dynamic, 64)
  for (std::size_t i = 0; i < lists.count; ++i) {
    const std::size_t group = lists.selected ? lists.selected[i] : i;
    const WalkTarget target = walk_target(lists.groups[group]);
    const ListRange range = lists.ranges[group];
    const std::uint32_t* words = lists.words + range.begin;
    flags[i] = std::any_of(words, words + range.cells, [&](std::uint32_t c) {
      return criterion.looks_at(count[c]) && criterion.has_come_near(target, g, c);
    });
  }
}

void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& lists, ListStatistics* total) {
  total->add(list_statistics(stream, tree, lists));
}

ListStatistics list_statistics(const Stream&, const Octree& tree, const ListView& lists) {
  ListStatistics total;
#pragma omp parallel
  {
    ListStatistics mine;
#pragma omp for schedule(dynamic, 64) nowait
    for (std::uint32_t i = 0; i < lists.count; ++i) {
      const std::uint32_t g = lists.selected ? lists.selected[i] : i;
      const ListRange range = lists.ranges[g];
      const std::uint32_t* leaves = lists.words + range.begin + range.cells;
      std::uint64_t particles = 0;
      for (std::uint32_t k = 0; k < range.leaves; ++k) particles += tree.count.data()[leaves[k]];
      mine.add(particles, range, lists.groups[g].count);
    }
#pragma omp critical
    total.add(mine);
  }
  return total;
}

}  // namespace maki
