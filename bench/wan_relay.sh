#!/usr/bin/env bash
# What a relay costs on an emulated link (270 ms round trip, 800 Mbit/s each way): throughput, and an 8-byte round trip.
# Usage, as root: bash bench/wan_relay.sh [build/wan_testbed] [options of `wan_testbed measure`]
set -euo pipefail
testbed=${1:-build/wan_testbed}
shift || true
settings=("$@")
[ $# -gt 0 ] || settings=(--streams 32 --congestion bbr --cases echo,warm,large --repeat 5 --large 256MB)

run() { # title, options of the testbed, options of the measurement
  echo "== $1"
  "$testbed" --quiet --rate 800Mbit --rmem 6MB --wmem 4MB $2 -- "$testbed" measure "${settings[@]}" $3
}

run "direct" "--rtt 270ms" ""
run "relay at the listener's end" "--rtt 270ms" "--relay 1"
run "relay in the middle, half of the round trip each side" "--rtt 135ms --sites 3" "--to 2 --relay 1"
run "direct, 2.1 ms" "--rtt 2.1ms" ""
run "relay at the listener's end, 2.1 ms" "--rtt 2.1ms" "--relay 1"
