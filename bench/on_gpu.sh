#!/usr/bin/env bash
# Usage: bench/on_gpu.sh OUTPUT [STEP ...]   What a new GPU, driver or toolkit has to pass, from a bundle or a build
# directory: the tests, compute-sanitizer on small runs, the benchmarks, whole runs. Each step writes OUTPUT/STEP.log
# (and .json); a step that fails or takes longer than LIMIT seconds (default 240) does not stop those after it.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
programs=${PROGRAMS:-$here/bin}; [ -d "$programs" ] || programs=$here/build
out=$1; shift; mkdir -p "$out"
limit=${LIMIT:-240}
steps=${*:-machine tests pair step sphere mesh treepm quickstart memcheck racecheck synccheck}
small="output.image=false run.overwrite=true"

sanitize() {  # TOOL
  local sanitizer=compute-sanitizer
  command -v $sanitizer >/dev/null || sanitizer=/usr/local/cuda/bin/compute-sanitizer
  # A box of 16^3 for a few steps, and a sphere: every kernel of a step is in them.
  "$sanitizer" --tool "$1" --error-exitcode 9 "$programs/maki" run "$here/configs/quickstart.toml" \
    initial.particles_per_side=16 time.end_redshift=40 output.redshifts=[40] output.power_spectrum=false $small run.output_directory="$out/$1.box" &&
  "$sanitizer" --tool "$1" --error-exitcode 9 "$programs/maki" run "$here/configs/plummer.toml" \
    initial.particles=2048 time.end_time=0.05 output.times=[0.05] $small run.output_directory="$out/$1.sphere"
}

run_step() {
  case $1 in
    machine) nvidia-smi; "$programs/maki" --version;;
    tests) "$programs/tests" --gtest_brief=1 --gtest_filter='-Full*';;
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

status=0
for step in $steps; do
  begin=$(date +%s)
  export -f run_step sanitize; export programs here out small
  timeout "$limit" bash -c "run_step $step" > "$out/$step.log" 2>&1; code=$?
  [ $code = 0 ] || status=1
  echo "== $step: exit status $code, $(($(date +%s) - begin)) s; $(tail -n 1 "$out/$step.log")"
done
exit $status
