#!/usr/bin/env python3
"""Steps of a run on one site against `maki model predict --model maki`: the least seconds of each kind of step.

Usage: bench/model_against_run.py METRICS MACHINE [MAKI]
  METRICS: metrics.jsonl of the run; MACHINE: what `maki model calibrate` wrote, [network] added for several ranks
"""
import json
import re
import subprocess
import sys


def least(lines, rebuilt, mesh):
    """Seconds of steps of a kind, without their mesh where `mesh` is false."""
    times = [line["seconds"] - line["phases"].get("energy", 0) - (0 if mesh else line["phases"].get("mesh", 0))
             for line in lines if line["rebuilt"] == rebuilt and (not mesh or line["long"])]
    return min(times) if times else None


def main(metrics, machine, maki="build/maki"):
    first, *lines = [json.loads(line) for line in open(metrics)]
    lines = [line for line in lines if line.get("step", 0) > 0]
    side = round(lines[0]["particles"] ** (1 / 3))
    configuration = first["provenance"]["configuration"]
    mesh = re.search(r"\nmesh = (\d+)", configuration).group(1)
    cut = re.search(r"\nr_cut = ([\d.]+)", configuration).group(1)
    ranks = lines[0].get("ranks", {}).get("count", 1)
    done = subprocess.run([maki, "model", "predict", "--model", "maki", "--machine", machine, "--particles", str(side),
                           "--mesh", mesh, "--cut", cut, "--processes", str(ranks), "--csv"],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    model = {row.split(",")[0]: float(row.split(",")[1]) for row in done.stdout.splitlines()[1:]}
    long_kept = least(lines, False, True)
    kept = least(lines, False, False)
    pairs = [("rebuild, without the mesh", least(lines, True, False), model["rebuild"]),
             ("kept lists, without the mesh", kept, model["step with kept lists"]),
             ("kept lists, with the mesh", long_kept, model["step with kept lists"] + model["what the mesh adds"])]
    print(f"{side}^3, mesh {mesh}^3, {ranks} ranks\n{'':30} {'measured':>10} {'model':>10} {'ratio':>7}")
    for name, measured, predicted in pairs:
        if measured:
            print(f"{name:30} {measured:10.4f} {predicted:10.4f} {predicted / measured:7.2f}")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
