#!/usr/bin/env bash
# Usage: run.sh PROGRAM RUNS   Every parser for so many runs; stops at the first finding and says where its input lies.
set -euo pipefail
program=$1 runs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for parser in $("$program"); do
  mkdir "$folder/$parser"
  if ! MAKI_PARSER=$parser MAKI_SAMPLES=$folder/$parser "$program" -runs="$runs" -seed=1 -max_len=1024 -print_final_stats=1 \
       -artifact_prefix="$(dirname "$program")/finding-$parser-" "$folder/$parser" > "$folder/log" 2>&1; then
    tail -40 "$folder/log"
    echo "fuzz: $parser FAILED"
    exit 1
  fi
  printf 'fuzz: %-10s %s runs, %s, nothing found\n' "$parser" "$(sed -n 's/.*executed_units: *//p' "$folder/log")" \
    "$(grep -o 'cov: [0-9]*' "$folder/log" | tail -1)"
done
