"""What distance costs: one simulation over s = 1, 2, 3, 4 sites on emulated links, all with the same number of ranks.

Usage (root):  python3 bench/wan_efficiency [OPTION ...] [key=value ...]
Each rank has a fixed quota of processor time (cgroup), the same in the run of one site, so that E(s) of SUSHI's eq. 14
compares like with like on a machine of few cores. The links' emulation runs outside of the quotas: leave it some.
With unequal quotas it also shows how boundaries settle, as numbers and as OUT/balance_*.png (matplotlib).
keys of the configuration behind the options go to all runs. Results: tables, and JSON in OUT/efficiency.json.
"""
import argparse
import json
import os
import sys

import launch
import measured
import plot_balance
import problem
import quota
import sushi
import tables


def arguments():
    parser = argparse.ArgumentParser(prog="python3 bench/wan_efficiency", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sites", default="1,2", help="numbers of sites, 1 first: 1,2,3,4 (default 1,2)")
    add("--ranks", type=int, default=2, help="of each run, over all its sites (default 2)")
    add("--quota", default="0.8", help="processors of each rank; one for all, or one for each: 0.8,0.4 (default 0.8)")
    add("--particles", type=int, default=32, help="cubed (default 32)")
    add("--mesh", default="", help="cells a side, one table line for each: 128,256 (default: as particles)")
    add("--preset", default="standard", choices=list(problem.LONG_STEP))
    add("--redshift", type=float, default=10, help="of the start (default 10, as in SUSHI's table)")
    add("--steps", type=int, default=12, help="about so many, at the preset's longest step (default 12)")
    add("--skip", type=int, default=2, help="steps that do not count (default 2)")
    add("--config", default="", help="another problem: a configuration without [sites]")
    add("--rtt", type=float, default=270, help="round trip of each link, ms (default 270)")
    add("--rate", type=float, default=800, help="of each link, Mbit/s (default 800)")
    add("--streams", type=int, default=32, help="of each path (default 32)")
    add("--pacing", type=float, default=0.96, help="of the line's rate (default 0.96)")
    add("--congestion", default="bbr")
    add("--maki", default="build/maki")
    add("--testbed", default="build/wan_testbed")
    add("--out", default="build/bench/wan_efficiency", help="folder of all that is written")
    add("--limit", type=float, default=540, help="seconds for one run (default 540)")
    add("--only-report", action="store_true", help="of what an earlier call left in OUT")
    add("--inside", default="", help=argparse.SUPPRESS)
    add("set", nargs="*", metavar="key=value", help="of the configuration")
    return parser.parse_args()


def checked(options):
    """Resolved, or the end with what is wrong."""
    if os.geteuid() != 0:
        sys.exit("wan_efficiency: skipped (namespaces and control groups need root)")
    if reason := quota.why_not():
        sys.exit(f"wan_efficiency: skipped ({reason})")
    for name in ("maki", "testbed"):
        program = os.path.abspath(getattr(options, name))
        if not os.access(program, os.X_OK):
            sys.exit(f"{program} is missing: make {getattr(options, name)}")
        setattr(options, name, program)
    options.out = os.path.abspath(options.out)
    options.counts = [int(s) for s in options.sites.split(",")]
    for s in options.counts:
        if not 1 <= s <= len(problem.NAMES) or options.ranks % s:
            sys.exit(f"{options.ranks} ranks cannot be shared evenly by {s} sites, of which there are 1 to 4")
    shares = [float(q) for q in options.quota.split(",")]
    if len(shares) not in (1, options.ranks):
        sys.exit(f"--quota: give one number, or one for each of the {options.ranks} ranks")
    options.shares = shares * options.ranks if len(shares) == 1 else shares
    options.meshes = [int(m) for m in options.mesh.split(",")] if options.mesh else [options.particles]
    return options


def run_all(options):
    """{(mesh, sites): folders}"""
    folders = {}
    for mesh in options.meshes:
        for count in options.counts:
            folder = f"{options.out}/m{mesh}_s{count}"
            names = ["one"] if count == 1 else problem.NAMES[:count]
            folders[mesh, count] = [f"{folder}/{name}" for name in names]
            if options.only_report:
                continue
            print(f"mesh {mesh}^3, {count} site{'s' if count > 1 else ''} ...", flush=True)
            text = problem.universe(options, mesh)
            if count == 1:
                launch.one_site(options, folder, text)
            else:
                launch.several_sites(options, count, folder, text)
    return folders


def show_balance(options, folders):
    """Where ranks differ in speed: how boundaries between sites followed."""
    if len(set(options.shares)) == 1:
        return
    for (mesh, count), of_sites in folders.items():
        if count > 1:
            trace = measured.slabs_of(of_sites[0])
            title = f"quotas of {options.quota} processors"
            plot_balance.print_trace(title, trace)
            plot_balance.plot(f"{options.out}/balance_m{mesh}_s{count}.png", {title: trace})


def main():
    options = arguments()
    if options.inside:
        with open(f"{options.inside}/options.json") as file:
            launch.inside(argparse.Namespace(**json.load(file)), options.inside)
        return
    options = checked(options)
    folders = run_all(options)
    rows = tables.rows(options, {at: measured.Run(f, options.skip) for at, f in folders.items()})
    tables.show(options, rows)
    sushi.print_table()
    show_balance(options, folders)
    with open(f"{options.out}/efficiency.json", "w") as file:
        json.dump({"options": {k: v for k, v in vars(options).items() if k != "shares"}, "rows": rows}, file, indent=1)
    print(f"\nJSON: {options.out}/efficiency.json")


if __name__ == "__main__":
    main()
