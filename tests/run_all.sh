#!/usr/bin/env bash
# Usage: run_all.sh "PROGRAM ..." [ARGUMENT ...]   Runs each test program with the arguments and sums up; the last line
# reads "N passed, N failed" (", N skipped" may follow). A program named tests_ranks is run alone and under mpirun, for
# each number of ranks in MAKI_TEST_RANKS (1 3 8). MAKI_TEST_SHARDS=n: the program named tests runs as n parts side by side. What
# lies in tests/ is a script (tests/python/run).
set -uo pipefail
programs=$1; shift
passed=0 failed=0 skipped=0 status=0
last=$(mktemp); trap 'rm -f "$last"' EXIT

run() {  # TITLE COMMAND...
  echo "== $1"; shift
  "$@" | tee "$last"
  add_up "$1" "${PIPESTATUS[0]}"
}

add_up() {  # COMMAND STATUS: what the last line in $last says
  local code=$2
  if [[ $(tail -n 1 "$last") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
  else
    echo "$1 ended early (exit status $code)"; failed=$((failed + 1))
  fi
  [ "$code" = 0 ] || status=1
}

run_parts() {  # N NAME COMMAND...
  local parts=$1 name=$2 n; shift 2
  local -a jobs logs
  for ((n = 0; n < parts; ++n)); do
    logs[n]=$(mktemp)
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$n "$@" > "${logs[n]}" 2>&1 &
    jobs[n]=$!
  done
  # Of a time limit: what was said so far.
  trap 'kill "${jobs[@]}" 2>/dev/null; tail -n +1 "${logs[@]}"; rm -f "${logs[@]}" "$last"; exit 143' TERM
  for ((n = 0; n < parts; ++n)); do
    local code=0
    wait "${jobs[n]}" || code=$?
    echo "== $name, part $((n + 1)) of $parts"
    tee "$last" < "${logs[n]}"
    rm -f "${logs[n]}"
    add_up "$name" "$code"
  done
  trap - TERM
}

for program in $programs; do
  name=$(basename "$program")
  if [[ $program == tests/* ]]; then run "$program" "$program"; continue; fi
  if [ "$name" = tests ] && [ "${MAKI_TEST_SHARDS:-1}" -gt 1 ]; then
    run_parts "$MAKI_TEST_SHARDS" "$name" "$program" "$@"; continue
  fi
  if [ "$name" != tests_ranks ]; then run "$name" "$program" "$@"; continue; fi
  mpirun=$(dirname "$program")/mpirun   # of a bundle, or of an MPI that is not the one on PATH
  [ -x "$mpirun" ] || mpirun=mpirun
  as_root=; [ "$(id -u)" = 0 ] && as_root=--allow-run-as-root
  for n in ${MAKI_TEST_RANKS:-1 3 8}; do
    launch=; [ "$n" = 1 ] || launch="$mpirun $as_root --oversubscribe --bind-to none -n $n"
    GTEST_COLOR=no OMP_NUM_THREADS=1 run "$name, ranks: $n" $launch "$program" "$@"
  done
done
echo
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test was run: is the filter of tests that there are?"; status=1; }
more=; [ "$skipped" -gt 0 ] && more=", $skipped skipped"
echo "$passed passed, $failed failed$more"
[ "$failed" = 0 ] && exit $status || exit 1
