#!/usr/bin/env bash
# A tree of many small files and one large one, copied at a stretch, then with four interruptions: the client killed
# three times, the server once. Ends with a comparison of everything. (Nothing is deleted on the way: ext4 is slow to make files
# for half a minute after many were deleted.)
#
#   bench/wan_copy.sh                                                            over loopback
#   build/wan_testbed --rtt 270ms --rate 800Mbit -- bench/wan_copy.sh            over an emulated link
#
#   BUILD=build  SMALL=10000 (files)  LARGE=2000 (10^6 bytes)  WORK=a folder with room for the tree three times
#   RATE=the link's bytes a second, for the floor                ARGS="--streams 32"   of both sides
set -euo pipefail
maki=$(realpath "${BUILD:-build}/maki") small=${SMALL:-10000} large=${LARGE:-2000} rate=${RATE:-100000000}
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/maki_copy_XXXXXX")
read -ra args <<<"${ARGS:-}"
here=() there=() address=127.0.0.1
if [ -n "${MAKI_NS_0:-}" ]; then
  there=(ip netns exec "$MAKI_NS_0") here=(ip netns exec "$MAKI_NS_1") address=$MAKI_ADDR_0
fi
server= client=
trap 'for p in $server $client; do kill -9 $p 2>/dev/null || true; done; rm -rf "$work"' EXIT

make_tree() {
  mkdir -p "$work/tree" "$work/served"
  python3 - "$work/tree" "$small" <<'PY'
import os, random, sys
root, count = sys.argv[1], int(sys.argv[2])
random.seed(1)
for i in range(count):
    folder = f"{root}/d{i % 100:02}/e{i % 7}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/file_{i}.dat", "wb") as out:
        out.write(random.randbytes(random.randrange(8000)))
    os.utime(f"{folder}/file_{i}.dat", ns=(0, 10**18 + 1000 * i + 7))
os.makedirs(f"{root}/empty/inner")
PY
  head -c "${large}000000" /dev/urandom > "$work/tree/large.dat"
  chmod 440 "$work/tree/large.dat"
}

port=0
start_server() {
  rm -f "$work/serve.log"
  "${there[@]}" "$maki" wan serve --root "$work/served" --listen "$address:$port" --key "$work/key" "${args[@]}" > "$work/serve.log" 2>&1 &
  server=$!
  disown $server  # no word of the shell about its end
  until grep -qs '^serving' "$work/serve.log"; do
    kill -0 $server 2>/dev/null || { cat "$work/serve.log" >&2; exit 1; }
    sleep 0.05
  done
  port=$(sed -n "s/^serving.* on .*:\([0-9]*\) (.*/\1/p" "$work/serve.log")
}
start_copy() {  # to the folder of this name
  "${here[@]}" "$maki" wan copy "$work/tree" "$address:$port/$1/" --key "$work/key" "${args[@]}" > "$work/copy.log" 2>&1 &
  client=$!
}
copied() { wait $client || { cat "$work/copy.log" >&2; exit 1; }; }
stop() {
  kill -9 "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  while kill -0 "$1" 2>/dev/null; do sleep 0.05; done  # its port is free then
}
seconds() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { printf "%.1f", b - a }'; }
there_now() { du -sb --apparent-size "$work/served/$1" | awk '{ printf "%.2f GB", $1 / 1e9 }'; }
listing() { (cd "$1" && find . -printf '%p %y %m %s %T@\n' | sort); }

make_tree
"$maki" wan keygen "$work/key" > "$work/keygen.log"
bytes=$(find "$work/tree" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
floor=$(awk -v b="$bytes" -v r="$rate" 'BEGIN { printf "%.1f", b / r }')
echo "tree: $(find "$work/tree" -type f | wc -l) files, $bytes bytes; floor at $rate bytes/s: $floor s"

start_server
begin=$(seconds)
start_copy whole
copied
whole=$(since "$begin")
echo "at a stretch: $whole s  ($(tail -1 "$work/copy.log"))"
begin=$(seconds)
start_copy whole
copied
echo "again, with nothing to do: $(since "$begin") s"

begin=$(seconds)
pause=$(awk -v t="$whole" 'BEGIN { print t / 5 }')
for i in 1 2 3; do
  start_copy pieces
  sleep "$pause"
  stop $client
  echo "client killed after $pause s: $(there_now pieces) there"
done
start_copy pieces
sleep "$pause"
stop $server
echo "server killed: $(there_now pieces) there"
start_server
if wait $client; then echo "the copy went on by itself"; else echo "the client ended: $(tail -1 "$work/copy.log")"; fi
start_copy pieces
copied
echo "last one: $(tail -1 "$work/copy.log")"
echo "with four interruptions: $(since "$begin") s"
diff -r "$work/tree" "$work/served/pieces/tree"
diff <(listing "$work/tree") <(listing "$work/served/pieces/tree")
echo "identical: names, contents, modes, times; nothing unfinished is left: $(find "$work/served" -name '*.maki-part' | wc -l)"
