#!/usr/bin/env bash
# What a relay costs on an emulated link (270 ms round trip, 800 Mbit/s each way): throughput, and an 8-byte round trip.
# Usage, as root: bash bench/wan_relay.sh [OPTION of `maki wan bench` ...]      BUILD=DIR: where maki and wan_testbed are (build)
set -euo pipefail
build=${BUILD:-build}
figures=$(mktemp); trap 'rm -f "$figures"' EXIT

run() { # title, options of the testbed, site of the listener, site of the relay
  "$build/wan_testbed" --quiet --rate 800Mbit --rmem 6MB --wmem 4MB $2 -- \
    bash "$(dirname "$0")/wan_between.sh" "$1" "$figures" "$3" "$4" bbr --streams 32 "${options[@]}"
}

options=("$@")
bash "$(dirname "$0")/wan_between.sh"
run "direct" "--rtt 270ms" 1 ""
run "relay at the listener's end" "--rtt 270ms" 1 1
run "relay in the middle, half the way each side" "--rtt 135ms --sites 3" 2 1
run "direct, 2.1 ms" "--rtt 2.1ms" 1 ""
run "relay at the listener's end, 2.1 ms" "--rtt 2.1ms" 1 1
