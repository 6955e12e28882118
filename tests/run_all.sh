#!/usr/bin/env bash
# Usage: run_all.sh "PROGRAM ..." [ARGUMENT ...]   Runs each test program with the arguments and sums up; the last line
# reads "N passed, N failed" (", N skipped" may follow).
set -uo pipefail
programs=$1; shift
passed=0 failed=0 skipped=0 status=0
last=$(mktemp); trap 'rm -f "$last"' EXIT
for program in $programs; do
  echo "== $(basename "$program")"
  "$program" "$@" | tee "$last"
  code=${PIPESTATUS[0]}
  if [[ $(tail -n 1 "$last") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
  else
    echo "$program ended early (exit status $code)"; failed=$((failed + 1))
  fi
  [ "$code" = 0 ] || status=1
done
echo
more=; [ "$skipped" -gt 0 ] && more=", $skipped skipped"
echo "$passed passed, $failed failed$more"
[ "$failed" = 0 ] && exit $status || exit 1
