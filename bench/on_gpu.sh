#!/usr/bin/env bash
# Usage: bench/on_gpu.sh OUTPUT [STEP ...]   What a new GPU, driver or toolkit has to pass, from a bundle or a build
# directory: the tests, compute-sanitizer on small runs, the benchmarks, whole runs. Each step writes OUTPUT/STEP.log
# (and .json); a step that fails or is ended after its seconds does not stop those after it.
#   machine 20    tests 240    pair, step, sphere, mesh, treepm, quickstart 45 each    memcheck, racecheck, synccheck 90 each
# So all take at most 800 s, and those before memcheck 530: limits for a lent machine with 16 cores, not measurements.
#   LIMIT=SECONDS   for each step in place of these       TOTAL=SECONDS   for all together: what finds no time is named and fails
#   PARTS=n         of the tests, side by side on the one GPU (half of the cores, up to 8)
#   PROGRAMS=DIR    where the programs are (bin/ of a bundle, else build/)
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
programs=${PROGRAMS:-$here/bin}
[ -n "${PROGRAMS:-}" ] || [ -d "$programs" ] || programs=$here/build
[ -x "$programs/maki" ] || { echo "on_gpu.sh: there is no program $programs/maki: PROGRAMS=DIRECTORY says where it is" >&2; exit 2; }
out=${1:?names where the logs go: bench/on_gpu.sh OUTPUT [STEP ...]}; shift; mkdir -p "$out" || exit 2
cores=$(nproc)
parts=${PARTS:-$((cores >= 16 ? 8 : cores > 1 ? cores / 2 : 1))}
steps=${*:-machine tests pair step sphere mesh treepm quickstart memcheck racecheck synccheck}
small="output.image=false run.overwrite=true"

sanitize() {  # TOOL
  local sanitizer=compute-sanitizer
  command -v $sanitizer >/dev/null || sanitizer=/usr/local/cuda/bin/compute-sanitizer
  command -v $sanitizer >/dev/null || { echo "skipped: there is no compute-sanitizer on this machine"; return 0; }
  # A box of 16^3 for a few steps, and a sphere: every kernel of a step is in them.
  export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-2000}   # else the program starts itself again, and sanitizers may lose it
  "$sanitizer" --tool "$1" --error-exitcode 9 "$programs/maki" run "$here/configs/quickstart.toml" \
    initial.particles_per_side=16 time.end_redshift=40 output.redshifts=[40] output.power_spectrum=false $small run.output_directory="$out/$1.box" &&
  "$sanitizer" --tool "$1" --error-exitcode 9 "$programs/maki" run "$here/configs/plummer.toml" \
    initial.particles=2048 time.end_time=0.05 output.times=[0.05] $small run.output_directory="$out/$1.sphere"
}

run_step() {
  case $1 in
    machine) nvidia-smi; local gpu=$?; "$programs/maki" --version && return $gpu;;
    tests) MAKI_TEST_SHARDS=$parts OMP_NUM_THREADS=$(((cores + parts - 1) / parts)) \
             exec bash "$here/tests/run_all.sh" "$programs/tests" --gtest_brief=1 --gtest_filter='-Full*';;
    pair) "$programs/bench_pair" --json "$out/pair.json";;
    step) "$programs/bench_step" --particles 4194304 --theta 0.5 --json "$out/step.json" &&
          "$programs/bench_step" --particles 4194304 --theta 0.5 --group 128 --json "$out/step_128.json";;
    sphere) "$programs/bench_sphere" --particles 4194304 --theta 0.5 --json "$out/sphere.json";;
    mesh) "$programs/bench_mesh" --particles 256 --no-errors --json "$out/mesh.json";;
    treepm) "$programs/bench_step" --config "$here/configs/quickstart.toml" --set initial.particles_per_side=256 \
              --set gravity.mesh=256 --json "$out/treepm.json";;
    quickstart) "$programs/maki" run "$here/configs/quickstart.toml" run.overwrite=true run.output_directory="$out/quickstart";;
    memcheck | racecheck | synccheck) sanitize "$1";;
    *) echo "no such step"; return 2;;
  esac
}

seconds_for() {  # STEP
  local most=${LIMIT:-45} left
  [ -n "${LIMIT:-}" ] || case $1 in machine) most=20;; tests) most=240;; *check) most=90;; esac
  left=$((${TOTAL:-$((SECONDS + most))} - SECONDS))
  echo $((left < most ? left : most))
}

status=0
export -f run_step sanitize; export programs here out small cores parts
for step in $steps; do
  begin=$SECONDS limit=$(seconds_for "$step")
  if [ "$limit" -le 0 ]; then echo "== $step: no time left (TOTAL=$TOTAL)"; status=1; continue; fi
  timeout -k 10 "$limit" bash -c 'run_step "$1"' on_gpu "$step" > "$out/$step.log" 2>&1; code=$?
  [ $code = 0 ] || status=1
  words="exit status $code"; [ $code != 124 ] || words="ended after $limit s"
  echo "== $step: $words, $((SECONDS - begin)) s; $(tail -n 1 "$out/$step.log")"
done
exit $status
