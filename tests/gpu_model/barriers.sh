#!/usr/bin/env bash
# usage: tests/gpu_model/barriers.sh [PROGRAM]     (build/gpu-model/tests_gpu_model)
# Leaves out one barrier of the kernels after the other: the tests of the kernel then have to find a fault on the modelled
# GPU. Prints a line for each; fails where a barrier is not missed, because it is not needed, or no test comes to it, or the
# model does not see what it is for.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=${1:-build/gpu-model/tests_gpu_model}
log=$(mktemp) && trap 'rm -f "$log"' EXIT

# Short tests that run the kernels of a file.
tests_of() {
  case $1 in
    kernels/device/algorithms*) echo 'BoxCopy.*' ;;
    kernels/measure/power_parts*) echo 'PowerBins.*' ;;
    kernels/force/evaluate_cuda.cu) echo 'DirectKernel.SizesAndParts' ;;
    kernels/force/*) echo 'EvaluateKernel.EmptyAndOneSidedLists:EvaluateLists.OnlySelectedGroups:EvaluateKernel.EveryGroupSize:EvaluateKernel.ExactlyZeroBeyondTheCutoff' ;;
    kernels/mesh/assign*) echo 'MassCounter.TakesParticlesInAnyOrder' ;;
    kernels/mesh/interpolate*) echo 'InterpolateKernel.TakesParticlesInAnyOrder' ;;
    kernels/mesh/chunk_tiles.cuh) echo 'MassCounter.TakesParticlesInAnyOrder:InterpolateKernel.TakesParticlesInAnyOrder' ;;
    kernels/tree/walk_cuda.cu) echo 'ListKernels.StatisticsOfSomeOfNoneAndOfEmptyLists' ;;
    kernels/tree/walk*) echo 'WalkKernel.EverySetInEveryRoom:WalkKernel.TreesOfOneParticleOneLeafAndOnePoint' ;;
    *) echo '*' ;;
  esac
}

# FILE:LINE of each barrier outside of comments.
barriers() {
  grep -rnE --include='*.cu' --include='*.cuh' '^[^/]*__sync(threads|warp)\(' kernels | sort -t: -k1,1 -k2,2n |
    cut -d: -f1,2
}

for file in $(barriers | cut -d: -f1 | sort -u); do
  if ! "$program" --gtest_brief=1 --gtest_filter="$(tests_of "$file")" > "$log" 2>&1; then
    echo "$file: its tests fail with all barriers there:"
    tail -5 "$log"
    exit 2
  fi
done

missed=0 noticed=0
for place in $(barriers); do
  MAKI_GPU_MODEL_WITHOUT=$place timeout 1200 \
    "$program" --gtest_brief=1 --gtest_filter="$(tests_of "${place%:*}")" > "$log" 2>&1
  status=$?
  faults=$(grep -oE 'GPU model: [^:]*: .*' "$log" | sed -E 's/^GPU model: //')
  fault=$(grep -m1 '^a race' <<< "$faults" || head -1 <<< "$faults")
  if [ $status -ne 0 ] && [ -n "$fault" ]; then
    noticed=$((noticed + 1))
    printf '%-40s %s at %s\n' "$place" "${fault%%:*}" "$(grep -oE '(kernels|tests)/[^ :]*:[0-9]+' <<< "$fault" | head -1)"
  else
    missed=$((missed + 1))
    printf '%-40s NOT NOTICED (exit code %d)\n' "$place" $status
  fi
done
echo "$noticed noticed, $missed not"
[ $missed -eq 0 ]
