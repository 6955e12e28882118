#!/usr/bin/env bash
# Usage (root): bench/wan_links.sh [OPTION ...]   What a path carries over emulated wide-area links, beside one plain stream.
#
# Makes a table on the terminal and JSON in build/bench/wan_links.json. OPTIONs go to every `wan_testbed measure` and overrule
# what is chosen here: --streams, --chunk, --receive-chunk, --window, --pacing, --insecure, --ipv6, --repeat, --cases ...
#   BUILD=DIR         where wan_testbed is (build)
#   LINKS="270 37.6"  round trips in ms, of 270, 37.6 and 2.1      CONGESTION="bbr cubic"      LOSSES="0 1e-4"
#
# The links: 800 Mbit/s of IP packets each way, MTU 1500, in front of the line a queue of what the link holds in half a round trip,
# at least 2 MB (270 ms: 13.5 MB), tail drop. The sites: tcp_rmem and tcp_wmem limits of 6 and 4 MB, nothing remembered
# between connections. TLS on, MB = 10^6 bytes, times from the sender's call to the receiver's last byte (one clock), medians.
# Endpoints run with real-time priority below the emulator's, so that other work on the machine does not count.
set -euo pipefail
build=${BUILD:-build}
testbed=$build/wan_testbed
[ -x "$testbed" ] || { echo "$testbed is missing: make $testbed" >&2; exit 1; }
parts=$(mktemp -d); trap 'rm -rf "$parts"' EXIT
mkdir -p "$build/bench"
priority=; chrt -r 1 true 2>/dev/null && priority="chrt -r 1"

# MPWide between Amsterdam and Tokyo (270 ms): 64 MB in 1.5 to 2.8 s; Gbit/s of its lines elsewhere are not comparable.
declare -A streams=([270]=32 [37.6]=32 [2.1]=8)

measure() {  # RTT CONGESTION LOSS [OPTION ...]
  local rtt=$1 congestion=$2 loss=$3; shift 3
  echo; echo "== round trip $rtt ms, 800 Mbit/s, loss $loss, $congestion, ${streams[$rtt]} streams, pacing 0.96 of the line"
  "$testbed" --rtt "${rtt}ms" --rate 800Mbit --loss "$loss" --rmem 6MB --wmem 4MB -- \
    $priority "$testbed" measure --congestion "$congestion" --streams "${streams[$rtt]}" --pacing 0.96 \
    --json "$parts/$(printf %02d "$runs").json" "$@"
  runs=$((runs + 1))
}

runs=0
for rtt in ${LINKS:-270 37.6 2.1}; do
  for loss in ${LOSSES:-0 1e-4}; do
    for congestion in ${CONGESTION:-bbr cubic}; do
      if [ "$loss" = 0 ]; then
        measure "$rtt" "$congestion" "$loss" "$@"
      else
        measure "$rtt" "$congestion" "$loss" --cases first,warm,large,plain --repeat-plain 1 "$@"
      fi
    done
  done
done
{ echo "["; sep=; for part in "$parts"/*.json; do printf '%s' "$sep"; cat "$part"; sep=,; done; echo "]"; } > "$build/bench/wan_links.json"
echo; echo "(MPWide, 270 ms: 64 MB in 1.5 to 2.8 s with 16 or 64 streams.)"
echo "JSON: $build/bench/wan_links.json"
