"""What each link of a ring of sites carries where its lines are unlike: with settings by link, and with one setting for all.

Usage (root):  python3 bench/sites_links.py [OPTION ...]
`maki sites check` at all sites at once, in network namespaces joined by emulated lines: it loads every link, first one way
and then the other. Rates are of what arrives, over the line's rate of IP packets (headers take 3.5 % of it). Prints a
table, and writes JSON to build/bench/sites_links.json. Sites and emulator run with real-time priority where they may,
so that other work on the machine counts less.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

NAMES = ["amsterdam", "tokyo", "edinburgh", "espoo"]
ENOUGH = 0.9  # of a line


def arguments():
    parser = argparse.ArgumentParser(prog="python3 bench/sites_links.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rates", default="100,400,800", help="of the lines, Mbit/s: from the first site to the second, ... (default 100,400,800)")
    add("--rtt", type=float, default=30, help="round trip of each link, ms (default 30)")
    add("--streams", type=int, default=8, help="of each path (default 8)")
    add("--pacing", type=float, default=0.96, help="of a line's rate (default 0.96)")
    add("--congestion", default="cubic")
    add("--repeat", type=int, default=3, help="times that all is measured; the median counts (default 3)")
    add("--config", default="configs/quickstart.toml")
    add("--maki", default="build/maki")
    add("--testbed", default="build/wan_testbed")
    add("--out", default="build/bench/sites_links", help="folder of keys and logs; the JSON stands beside it")
    add("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def rates_of(options):
    rates = [float(rate) for rate in options.rates.split(",")]
    if not 3 <= len(rates) <= len(NAMES):
        sys.exit(f"--rates: give 3 or {len(NAMES)}, one for each link of the ring")
    return rates


def settings(options, rates, by_link):
    """Of [sites], the same at all sites. One setting for all has to suit the slowest line."""
    words = ["sites.ring=" + ",".join(NAMES[:len(rates)]), f"sites.path.streams={options.streams}",
             f"sites.path.congestion={options.congestion}", f"sites.path.pacing={options.pacing * min(rates):g} Mbit/s"]
    for i, rate in enumerate(rates):
        words += [f"sites.{NAMES[i]}.address={os.environ[f'MAKI_ADDR_{i}']}:6000", f"sites.{NAMES[i]}.key={options.out}/{i}.key"]
        if by_link:
            words.append(f"sites.{NAMES[i]}.path.pacing={options.pacing * rate:g} Mbit/s")
    return words


def check(options, rates, by_link):
    """{link: [Mbit/s one way, Mbit/s the other way]}, as the sites on the left and on the right see what comes in."""
    first = ["chrt", "-r", "1"] if shutil.which("chrt") and subprocess.run(["chrt", "-r", "1", "true"]).returncode == 0 else []
    processes = []
    for i in range(len(rates)):
        words = ["nsenter", f"--net=/var/run/netns/{os.environ[f'MAKI_NS_{i}']}"] + first
        words += [options.maki, "sites", "check", options.config, "--site", NAMES[i]] + settings(options, rates, by_link)
        processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    carried = {}
    for i, process in enumerate(processes):
        text = process.communicate(timeout=300)[0]
        with open(f"{options.out}/{NAMES[i]}_{'by_link' if by_link else 'for_all'}.log", "w") as log:
            log.write(text)
        if process.returncode != 0:
            sys.exit(f"maki sites check at {NAMES[i]} ended with {process.returncode}:\n{text}")
        right = NAMES[(i + 1) % len(rates)]
        row = next(line for line in text.splitlines() if line.startswith(right + " "))
        carried[i] = [float(rate) for rate in re.findall(r"([0-9.]+) Mbit/s", row)[-2:]]
    return carried


def inside(options):
    rates = rates_of(options)
    for i in range(len(rates)):
        if not os.path.exists(f"{options.out}/{i}.key"):
            subprocess.run([options.maki, "wan", "keygen", f"{options.out}/{i}.key"], check=True, stdout=subprocess.DEVNULL)
    rows = []
    measured = {True: [], False: []}
    for _ in range(options.repeat):  # in turn, so that a drift of the machine meets both alike
        for by_link, found in measured.items():
            found.append(check(options, rates, by_link))
    median = lambda by_link, i, way: sorted(one[i][way] for one in measured[by_link])[options.repeat // 2]
    for i, rate in enumerate(rates):
        rows.append({"link": f"{NAMES[i]} - {NAMES[(i + 1) % len(rates)]}", "line": rate,
                     "by link": [median(True, i, way) for way in (0, 1)], "for all": [median(False, i, way) for way in (0, 1)]})
    show(options, rows)
    with open(f"{options.out}.json", "w") as file:
        json.dump({"options": vars(options), "rows": rows, "load": os.getloadavg()[0]}, file, indent=1)


def show(options, rows):
    print(f"\nround trip {options.rtt:g} ms, {options.streams} streams, {options.congestion}, paced at {options.pacing:g} of a line; "
          f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'link':<24} {'line':>6} | by link: out     in  of the line | one for all: out    in  of the line   (Mbit/s)")
    for row in rows:
        share = {name: min(row[name]) / row["line"] for name in ("by link", "for all")}
        print(f"{row['link']:<24} {row['line']:6g} | {row['by link'][0]:12.1f} {row['by link'][1]:6.1f} {share['by link']:12.3f} | "
              f"{row['for all'][0]:16.1f} {row['for all'][1]:5.1f} {share['for all']:12.3f}")
    slow = [row["link"] for row in rows if min(row["by link"]) < ENOUGH * row["line"]]
    print(f"\nBelow {ENOUGH:g} of its line: {', '.join(slow)}" if slow else f"\nEach link carries {ENOUGH:g} of its line and more.")


def main():
    options = arguments()
    options.out, options.maki, options.testbed = (os.path.abspath(path) for path in (options.out, options.maki, options.testbed))
    if options.inside:
        return inside(options)
    if os.geteuid() != 0:
        sys.exit("sites_links: skipped (namespaces need root)")
    rates = rates_of(options)
    os.makedirs(options.out, exist_ok=True)
    words = [options.testbed, "--sites", str(len(rates)), "--topology", "ring", "--rtt", f"{options.rtt}ms",
             "--rate", ",".join(f"{rate:g}Mbit" for rate in rates), "--rmem", "6MB", "--wmem", "4MB", "--quiet", "--"]
    sys.exit(subprocess.run(words + [sys.executable] + sys.argv + ["--inside"]).returncode)


if __name__ == "__main__":
    main()
