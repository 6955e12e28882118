"""Python under a launcher of MPI, as an MPI job."""
import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import maki, numpy
start = maki.initial_conditions(particles_per_side=16, box={"size": 30})
power = maki.power(maki.Simulation(end_redshift=30, particles_per_side=16, box={"size": 30}, deterministic=True).evolve().snapshot())
print("particles", len(start), "power", repr(float(power.power[3])))
"""


def run(launcher):
    done = subprocess.run([*launcher, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines() if line.startswith("particles")]


def test_two_ranks_do_what_one_does():
    mpirun = os.environ.get("MAKI_MPIRUN") or shutil.which("mpirun")
    if not mpirun:
        pytest.skip("there is no mpirun")
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    [alone] = run([])
    both = run([mpirun, *as_root, "--oversubscribe", "--bind-to", "none", "-n", "2"])
    assert alone[1] == "4096" and [words[1] for words in both] == ["2048", "2048"]
    assert all(float(words[3]) == pytest.approx(float(alone[3]), rel=1e-6) for words in both)
