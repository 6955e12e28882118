"""How interaction lists were kept in a run: python3 bench/reuse_report.py OUTPUT/metrics.jsonl"""
import json
import statistics
import sys


def median(values):
    return statistics.median(values) if values else float("nan")


def main(path):
    steps = [json.loads(line) for line in open(path)]
    steps = [s for s in steps if "rebuilt" in s and "step" in s]
    rebuilt = [s for s in steps if s["rebuilt"]]
    kept = [s for s in steps if not s["rebuilt"]]
    # The last use of each set of lists: the step before a rebuild.
    last = [a for a, b in zip(steps, steps[1:]) if b["rebuilt"] and not a["rebuilt"] and a["fresh_error"] > 0]
    ratios = sorted(s["probe_error"] / s["fresh_error"] for s in last)
    print(f"{len(steps)} steps, {len(rebuilt)} rebuilds: {100 * len(rebuilt) / len(steps):.1f} in 100 steps")
    if ratios:
        print(f"error on the last reused step over a fresh list's: median {median(ratios):.2f}, "
              f"90 % {ratios[int(0.9 * (len(ratios) - 1))]:.2f}, max {ratios[-1]:.2f}")
    everything = sorted(s["probe_error"] / s["fresh_error"] for s in kept if s["fresh_error"] > 0)
    if everything:
        over = sum(r > 1.5 for r in everything)
        print(f"all reused steps: median {median(everything):.2f}, max {everything[-1]:.2f}, above 1.5: {over} of {len(everything)}")
    if not kept:
        sys.exit("no step has kept lists (gravity.reuse = 1)")
    print(f"groups walked again on a reused step: {100 * median([s['rewalked'] / s['groups'] for s in kept]):.1f} % median, "
          f"{100 * max(s['rewalked'] / s['groups'] for s in kept):.1f} % at most")

    def tree(s):
        return s["phases"].get("tree", 0.0)

    print(f"tree seconds: rebuild step {median([tree(s) for s in rebuilt]):.4f}, reuse step {median([tree(s) for s in kept]):.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
