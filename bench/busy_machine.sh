#!/bin/bash
# A small run on a busy machine: seconds alone, beside as many other programs as there are cores, and as four ranks with
# one and with two threads each, for several spin counts of libgomp (300000 is its own; "-": what maki sets itself).
#   bench/busy_machine.sh [-r REPEATS] [-c "CASES"] [-s "COUNTS"] [MAKI] [KEY=VALUE ...]
# Settings take turns within each repeat, so that a drift of the machine's speed meets all alike. Prints medians.
cd "$(dirname "$0")/.." || exit 1
repeats=3 cases="alone busy ranks1 ranks2" counts="- 300000 10000 5000 3000 2000 1000 300 0"
while getopts r:c:s: option; do
  case $option in r) repeats=$OPTARG ;; c) cases=$OPTARG ;; s) counts=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
maki=${1:-build/maki}
shift
scratch=$(mktemp -d)
hogs=()
stop_hogs() { [ ${#hogs[@]} -eq 0 ] || { kill "${hogs[@]}"; wait "${hogs[@]}"; } 2>/dev/null; hogs=(); }
trap 'stop_hogs; rm -rf "$scratch"' EXIT

launch() {  # CASE: the run, by the launcher that the case asks for
  local run=("$maki" run configs/quickstart.toml particles_per_side=32 "softening=52 kpc/h" end_redshift=10
             output.redshifts=[] image=false power_spectrum=false "output_directory=$scratch/out" "${settings[@]}")
  local ranks=(mpirun --allow-run-as-root --oversubscribe -n 4)
  case $1 in
    ranks1) OMP_NUM_THREADS=1 "${ranks[@]}" "${run[@]}" ;;
    ranks2) OMP_NUM_THREADS=2 "${ranks[@]}" "${run[@]}" ;;
    *) "${run[@]}" ;;
  esac
}

measure() {  # CASE COUNT: seconds, onto the list of both
  [ "$2" = - ] && unset GOMP_SPINCOUNT || export GOMP_SPINCOUNT=$2
  local begin end
  begin=$(date +%s%N)
  launch "$1" > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
  end=$(date +%s%N)
  echo $(((end - begin) / 1000000)) >> "$scratch/$1.$2"
}

settings=("$@")
for case in $cases; do
  if [ "$case" = busy ]; then
    for ((i = 0; i < $(nproc); ++i)); do
      while :; do :; done &
      hogs+=($!)
    done
  fi
  for ((i = 0; i < repeats; ++i)); do
    for count in $counts; do measure "$case" "$count"; done
  done
  stop_hogs
done

printf '%-12s' "spin count"; printf '%10s' $cases; echo
for count in $counts; do
  printf '%-12s' "$count"
  for case in $cases; do sort -n "$scratch/$case.$count" | awk '{v[NR] = $1} END {printf "%10.2f", v[int((NR + 1) / 2)] / 1000}'; done
  echo
done
