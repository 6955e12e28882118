#!/usr/bin/env bash
# Usage (root): bench/wan_links.sh [OPTION ...]   What a path carries over emulated wide-area links, beside one plain stream.
#
# Makes a table on the terminal and JSON in build/bench/wan_links.json. OPTIONs go to `maki wan bench` at both ends and overrule
# what is chosen here: --quick or --full, --streams, --send-chunk, --window, --pacing ... The plain stream is iperf3's.
#   BUILD=DIR         where maki and wan_testbed are (build)
#   LINKS="270 37.6"  round trips in ms, of 270, 37.6 and 2.1      CONGESTION="bbr cubic"      LOSSES="0 1e-4"
#
# The links: 800 Mbit/s of IP packets each way, MTU 1500, in front of the line a queue of what the link holds in half a round trip,
# at least 2 MB (270 ms: 13.5 MB), tail drop. The sites: tcp_rmem and tcp_wmem limits of 6 and 4 MB, nothing remembered
# between connections. TLS on, MB = 10^6 bytes, times from the sender's call to the receiver's last byte, medians.
set -euo pipefail
build=${BUILD:-build}
for program in maki wan_testbed; do
  [ -x "$build/$program" ] || { echo "$build/$program is missing: make $build/$program" >&2; exit 1; }
done
command -v iperf3 > /dev/null || echo "iperf3 is not here (apt install iperf3): without the figure of one plain stream" >&2
parts=$(mktemp -d); trap 'rm -rf "$parts"' EXIT
mkdir -p "$build/bench"

# MPWide between Amsterdam and Tokyo (270 ms): 64 MB in 1.5 to 2.8 s; Gbit/s of its lines elsewhere are not comparable.
declare -A streams=([270]=32 [37.6]=32 [2.1]=8)

bash "$(dirname "$0")/wan_between.sh"
runs=10
for rtt in ${LINKS:-270 37.6 2.1}; do
  for loss in ${LOSSES:-0 1e-4}; do
    for congestion in ${CONGESTION:-bbr cubic}; do
      runs=$((runs + 1))
      "$build/wan_testbed" --quiet --rtt "${rtt}ms" --rate 800Mbit --loss "$loss" --rmem 6MB --wmem 4MB -- \
        bash "$(dirname "$0")/wan_between.sh" "$rtt ms, loss $loss, $congestion" "$parts/$runs.json" 1 "" "$congestion" \
        --streams "${streams[$rtt]}" "$@"
    done
  done
done
{ echo "["; sep=; for part in "$parts"/*.json; do printf '%s' "$sep"; cat "$part"; sep=$',\n'; done; echo "]"; } > "$build/bench/wan_links.json"
echo; echo "(MPWide, 270 ms: 64 MB in 1.5 to 2.8 s with 16 or 64 streams.)"
echo "JSON: $build/bench/wan_links.json"
