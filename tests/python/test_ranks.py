"""Python under a launcher of MPI, as an MPI job."""
import os
import shutil
import subprocess
import sys

import pytest

# Each process writes what it found into a file of its own.
PROGRAM = """
import os, sys, maki
universe = dict(particles_per_side=16, box={"size": 30}, deterministic=True)
start = maki.initial_conditions(**universe)
power = maki.power(maki.Simulation(**universe, end_redshift=30).evolve().snapshot())
with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
    print(len(start), repr(float(power.power[3])), file=file)
maki.write_groups(os.path.join(sys.argv[1], "groups.hdf5"), maki.groups(start, minimum=2))
if start.ids.min() == 1:  # on the first rank only
    start.positions[0] = float("nan")
try:
    maki.power(start)
    raise SystemExit("a particle nowhere has a power spectrum")
except maki.Error:
    pass
"""


def run(launcher, folder):
    folder.mkdir()
    done = subprocess.run([*launcher, sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    return [entry.read_text().split() for entry in folder.iterdir() if entry.name.isdigit()]


def test_two_ranks_do_what_one_does(tmp_path):
    mpirun = os.environ.get("MAKI_MPIRUN") or shutil.which("mpirun")
    if not mpirun:
        pytest.skip("there is no mpirun")
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    [alone] = run([], tmp_path / "alone")
    both = run([mpirun, *as_root, "--oversubscribe", "--bind-to", "none", "-n", "2"], tmp_path / "both")
    assert alone[0] == "4096" and [words[0] for words in both] == ["2048", "2048"]
    assert all(float(words[1]) == pytest.approx(float(alone[1]), rel=1e-6) for words in both)
