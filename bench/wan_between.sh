#!/usr/bin/env bash
# What wan_links.sh and wan_relay.sh run in a testbed: wan_between.sh NAME FILE TO RELAY CONGESTION [OPTION ...]
# `maki wan bench` from site 0 to site TO, with OPTIONs at both, by a relay at site RELAY ("": none); without one, 64 MB over
# one plain stream of iperf3 beside it. Prints a row of the table, and writes its figures to FILE (JSON). Without arguments
# prints the table's head.
#
# Endpoints run with real-time priority below the emulator's, so that other work on the machine does not count.
set -euo pipefail
if [ $# -eq 0 ]; then
  printf '%-44s%15s%15s%15s%15s%15s%15s%15s\n' "" "64 MB warm" "after silence" "both ways" "512 MB of line" \
    "8 bytes beyond" "CPU, both ends" "plain stream"
  exit
fi
name=$1 file=$2 to=$3 relay=$4 congestion=$5; shift 5
maki=$(realpath "${BUILD:-build}/maki") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
priority=; chrt -r 1 true 2>/dev/null && priority="chrt -r 1"

at() {  # SITE COMMAND ...
  local space=MAKI_NS_$1; shift
  ip netns exec "${!space}" $priority "$@"
}
listens() {  # FILE: until a program has said so there
  for _ in $(seq 100); do grep -q -i "listening on" "$1" 2> /dev/null && return; sleep 0.1; done
  cat "$1" >&2; exit 1
}

address=MAKI_ADDR_$to; address=${!address}
"$maki" wan keygen "$work/site.key" > "$work/said"
listen=(--listen "$address:6000")
options=(--congestion "$congestion" --pacing "$(awk "BEGIN { print 0.96e-6 / 8 * $MAKI_LINK_RATE }") MB/s")
[[ " $* " == *" --insecure "* ]] || options+=(--key "$work/site.key")
if [ -n "$relay" ]; then
  joint=MAKI_ADDR_$relay; joint=${!joint}:7000
  "$maki" wan keygen "$work/relay.key" > "$work/said"
  at "$relay" "$maki" wan relay --listen "$joint" --key "$work/relay.key" --congestion "$congestion" > "$work/relay" 2>&1 &
  listens "$work/relay"
  listen=()
  options+=(--relay "$joint" --relay-key "$work/relay.key" --relay-target hidden)
fi
at "$to" "$maki" wan bench "${listen[@]}" --once "${options[@]}" "$@" > "$work/listener" 2>&1 &
listens "$work/listener"
at 0 "$maki" wan bench "$address:6000" --no-sweep "${options[@]}" "$@" --json "$work/bench.json" > "$work/caller" 2>&1 ||
  { cat "$work/listener" "$work/caller" >&2; exit 1; }
if [ -z "$relay" ] && command -v iperf3 > /dev/null; then
  at "$to" iperf3 -s -1 -B "$address" --forceflush > "$work/plain" 2>&1 &
  listens "$work/plain"
  at 0 iperf3 -c "$address" -n 64000000 -C "$congestion" -J > "$work/plain.json"
fi

python3 - "$name" "$work" "$file" "$to" <<'END'
import json, os, sys
name, work, file, to = sys.argv[1:]
link = {key.lower(): float(os.environ["MAKI_LINK_" + key]) for key in ("RATE", "RTT", "QUEUE", "LOSS")}
bench = json.load(open(work + "/bench.json"))
plain = json.load(open(work + "/plain.json")) if os.path.exists(work + "/plain.json") else None
of = lambda megabytes, key, messages=bench["messages"]: next((m[key] for m in messages if m["bytes"] == 1e6 * megabytes), None)
large = of(512, "out_s")
carried = large and 100 * 8 * 512e6 / large / link["rate"]
beyond = 1e3 * (bench["latency_s"]["median"] - link["rtt"] * int(to))  # sites in a line
cpu = bench["cpu_s_per_gb"]["here"] + bench["cpu_s_per_gb"]["there"]
rate = plain and plain["end"]["sum_received"]["bits_per_second"] / 1e6
cells = [(of(64, "out_s"), "{:.3f} s"), (of(64, "out_s", [bench["after_silence"]]), "{:.3f} s"), (of(64, "both_s"), "{:.3f} s"),
         (carried, "{:.1f} %"), (beyond, "{:.1f} ms"), (cpu, "{:.1f} s/GB"), (rate, "{:.0f} Mbit/s")]
print(f"{name:<44}" + "".join(f"{'-' if value is None else form.format(value):>15}" for value, form in cells), flush=True)
json.dump({"what": name, "link": link, "bench": bench, "iperf3": plain and plain["end"]}, open(file, "w"))
END
