#!/usr/bin/env bash
# The settings from which the presets were chosen, on the beginning and the end of quickstart, and their plot.
#   bench/accuracy_front.sh [BUILD] [PYTHON with matplotlib]      writes BUILD/bench/accuracy_{z49,z0}.json and bench/accuracy.png
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build} python=${2:-python3} out=${1:-build}/bench
mkdir -p "$out"
[ -f "$out/quickstart/snapshot_003.hdf5" ] || "$build/maki" run configs/quickstart.toml output_directory="$out/quickstart" > "$out/quickstart.log"
cases=(--case run.preset=fast --case run.preset=standard --case run.preset=precise)
for theta in 0.35 0.5 0.7; do
  for setting in "64 3 3" "96 2.5 3" "96 3 3" "96 3.5 4" "96 4.5 5" "96 5 6" "128 3 4" "128 4 5" "128 6 6"; do
    set -- $setting
    for back in "full analytic" "assignment spectral"; do
      cases+=(--case "gravity.theta=$theta gravity.theta_early=$theta gravity.mesh=$1 gravity.r_cut=$2 gravity.split_order=$3 gravity.interlacing=${back% *} gravity.gradient=${back#* }")
    done
  done
  cases+=(--case "gravity.theta=$theta gravity.theta_early=$theta gravity.split=s2 gravity.r_cut=3 gravity.mesh=64 gravity.assignment=tsc gravity.interlacing=none gravity.gradient=four-point")
  cases+=(--case "gravity.theta=$theta gravity.theta_early=$theta gravity.split=s2 gravity.r_cut=3 gravity.mesh=128 gravity.assignment=tsc gravity.interlacing=none gravity.gradient=four-point")
done
"$build/bench_accuracy" configs/quickstart.toml "${cases[@]}" --repeat 3 --json "$out/accuracy_z49.json"
"$build/bench_accuracy" configs/quickstart.toml --set initial.kind=file --set initial.file="$out/quickstart/snapshot_003.hdf5" \
  --set time.end_redshift=-0.5 "${cases[@]}" --repeat 3 --json "$out/accuracy_z0.json"
"$python" bench/plot_accuracy.py bench/accuracy.png "z = 49=$out/accuracy_z49.json" "z = 0=$out/accuracy_z0.json"
