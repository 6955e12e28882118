#!/usr/bin/env bash
# Usage: run_all.sh "PROGRAM ..." [ARGUMENT ...]   Runs each test program with the arguments and sums up; the last line
# reads "N passed, N failed" (", N skipped" may follow). A program named tests_ranks is run alone and under mpirun, for
# each number of ranks in MAKI_TEST_RANKS.
set -uo pipefail
programs=$1; shift
passed=0 failed=0 skipped=0 status=0
last=$(mktemp); trap 'rm -f "$last"' EXIT

run() {  # TITLE COMMAND...
  echo "== $1"; shift
  "$@" | tee "$last"
  local code=${PIPESTATUS[0]}
  if [[ $(tail -n 1 "$last") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
  else
    echo "$1 ended early (exit status $code)"; failed=$((failed + 1))
  fi
  [ "$code" = 0 ] || status=1
}

for program in $programs; do
  name=$(basename "$program")
  if [ "$name" != tests_ranks ]; then run "$name" "$program" "$@"; continue; fi
  mpirun=$(dirname "$program")/mpirun   # of a bundle
  [ -x "$mpirun" ] || mpirun=mpirun
  as_root=; [ "$(id -u)" = 0 ] && as_root=--allow-run-as-root
  for n in ${MAKI_TEST_RANKS:-1 2 3 4 7 8}; do
    launch=; [ "$n" = 1 ] || launch="$mpirun $as_root --oversubscribe --bind-to none -n $n"
    GTEST_COLOR=no OMP_NUM_THREADS=1 run "$name, ranks: $n" $launch "$program" "$@"
  done
done
echo
if [ "$skipped" -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
[ "$failed" = 0 ] && exit $status || exit 1
