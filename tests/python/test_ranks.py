"""Python under a launcher of MPI, as an MPI job."""
import os
import re
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


# Before Maki uses it, MPI is started by the library that Maki is linked to, as by mpi4py; finalizing twice ends a process.
STARTED_ELSEWHERE = """
import atexit, ctypes, maki
mpi, level = ctypes.CDLL(maki._core.__file__), ctypes.c_int()
mpi.MPI_Init_thread(None, None, LEVEL, ctypes.byref(level))
if level.value != LEVEL:
    raise SystemExit(77)
atexit.register(mpi.MPI_Finalize)
"""


def make(launcher, program, *arguments, **variables):
    return subprocess.run([*launcher, sys.executable, "-c", program, *arguments], capture_output=True, text=True,
                          timeout=300, env=dict(os.environ, OMP_NUM_THREADS="1", **variables))


def run(launcher, folder, program=PROGRAM):
    folder.mkdir()
    done = make(launcher, program, folder)
    if done.returncode == 77:
        pytest.skip("this MPI has no such level of threads")
    assert done.returncode == 0, done.stdout + done.stderr
    return [entry.read_text().split() for entry in folder.iterdir() if entry.name.isdigit()]


@pytest.fixture
def two_ranks():
    """The command that starts two ranks."""
    mpirun = os.environ.get("MAKI_MPIRUN") or shutil.which("mpirun")
    if not mpirun:
        pytest.skip("there is no mpirun")
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    return [mpirun, *as_root, "--oversubscribe", "--bind-to", "none", "-n", "2"]


def test_two_ranks_do_what_one_does(tmp_path, two_ranks):
    [alone] = run([], tmp_path / "alone")
    both = run(two_ranks, tmp_path / "both")
    assert alone[0] == "4096" and [words[0] for words in both] == ["2048", "2048"]
    assert all(float(words[1]) == pytest.approx(float(alone[1]), rel=1e-6) for words in both)


@pytest.mark.parametrize("level", [1, 3])  # MPI_THREAD_FUNNELED, MPI_THREAD_MULTIPLE
def test_mpi_may_be_started_by_another_library(tmp_path, two_ranks, level):
    program = STARTED_ELSEWHERE.replace("LEVEL", str(level)) + PROGRAM
    [alone] = run([], tmp_path / "alone", program)
    assert alone[0] == "4096"
    assert [words[0] for words in run(two_ranks, tmp_path / "both", program)] == ["2048", "2048"]


def test_mpi_started_without_threads_is_refused():
    done = make([], STARTED_ELSEWHERE.replace("LEVEL", "0") + "maki.initial_conditions(particles_per_side=16)")
    if done.returncode == 77:
        pytest.skip("this MPI always has threads")
    assert done.returncode == 1 and "maki.Error: MPI runs with MPI_THREAD_SINGLE" in done.stderr, done.stderr


FOR_ONE_PROCESS = """
import os, sys, maki, maki.amuse
whole = maki.snapshot([[0., 0, 0], [1, 0, 0], [0, 1, 0]], [[0., 0, 0]] * 3, 1.)
header = maki.Header()
header.box_size, header.omega0, header.hubble = 10., 0.3, 0.7
box = maki.snapshot(whole.positions, whole.velocities, 1., header=header)
universe = dict(particles_per_side=16, box={"size": 30})
calls = dict(forces=lambda: maki.forces(maki.initial_conditions(**universe)), amuse=lambda: maki.amuse.Maki(),
             simulation=lambda: maki.Simulation(whole, softening=0.1), image=lambda: maki.image(whole, pixels=16),
             power=lambda: maki.power(box), groups=lambda: maki.groups(box),
             write=lambda: maki.write(os.path.join(sys.argv[1], "set.hdf5"), whole))
for name, call in calls.items():
    try:
        call()
    except maki.Error as error:
        with open(os.path.join(sys.argv[1], str(os.getpid())), "a") as file:
            print(name, "one-process" if "is for one process, and these are 2" in str(error) else
                  "shares" if "several ranks were given the same particles" in str(error) else error, file=file)
"""


def test_whole_sets_are_refused(tmp_path, two_ranks):
    expected = "forces one-process amuse one-process simulation shares image shares power shares groups shares write shares"
    assert run(two_ranks, tmp_path / "both", FOR_ONE_PROCESS) == [expected.split()] * 2
    assert not (tmp_path / "both/set.hdf5").exists()


# The first rank is the one with the particle 1.
DIFFERENT_SETTINGS = """
import os, sys, maki
universe = dict(particles_per_side=16, box={"size": 30})
first = int(maki.initial_conditions(**universe).ids.min() == 1)
place = os.path.join(sys.argv[1], "run")
for call in (lambda: maki.Simulation(**universe, softening=0.1 + first), lambda: maki.initial_conditions(**universe, seed=first),
             lambda: maki.run(**universe, output_directory=place + str(first)),
             lambda: maki.resume(place, threads=1 + first, restart_steps=5 + first)):
    try:
        call()
    except maki.Error as error:
        with open(os.path.join(sys.argv[1], str(os.getpid())), "a") as file:
            print(error, file=file)
"""


def test_different_settings_are_refused(tmp_path, two_ranks):
    both = [" ".join(words) for words in run(two_ranks, tmp_path / "both", DIFFERENT_SETTINGS)]
    assert len(both) == 2 and both[0] == both[1]
    assert re.fullmatch(".*".join(["the ranks have different settings .*", "gravity.softening = 1.1 on rank 0, and",
                                   "= 0.1 on rank 1", "initial.seed = 1 on", "run.output_directory = /", "run0 on rank 1",
                                   r"maki.resume\('/", "', restart_steps=6\\) on rank 0", ""]), both[0]), both[0]


# The rank with the particle 1 is the first, also here.
ONE_ENDS = """
import os, sys, maki
place = os.path.join(sys.argv[1], "run")

def callback(state):
    if state.ids.min() == 1 and state.steps > 1:
        WHAT

try:
    told = maki.run(callback=callback, quiet=True, output_directory=place, image=False, power_spectrum=False,
                    particles_per_side=16, box={"size": 30}, end_redshift=15).stopped_by
except Exception as error:
    told = type(error).__name__ + " " + str(error)
more = maki.resume(place, quiet=True)
with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
    print(told, "then", more.stopped_by or "ended", file=file)
"""
NAMED = r"in the callback of rank [01]\)"


@pytest.mark.parametrize("what, ends", [
    ("raise ValueError('mine')", ["ValueError mine", rf"Error a callback has ended the run \(ValueError {NAMED}: .*"]),
    ("return False", ["the callback of rank [01]"] * 2)])
def test_a_callback_of_one_rank_ends_the_run_of_all(tmp_path, two_ranks, monkeypatch, what, ends):
    monkeypatch.setenv("MAKI_RANK_TIMEOUT", "20")
    told = [" ".join(words) for words in run(two_ranks, tmp_path / "both", ONE_ENDS.replace("WHAT", what))]
    assert len(told) == 2
    for end in ends:
        assert any(re.fullmatch(end + " then ended", one) for one in told), told


def test_an_exception_is_told_where_other_ranks_wait_in_the_callback(tmp_path, two_ranks):
    program = ONE_ENDS.replace("WHAT", "raise ValueError('mine')\n    maki.power(state.snapshot())")
    (tmp_path / "both").mkdir()
    done = make(two_ranks, program, tmp_path / "both", MAKI_RANK_TIMEOUT="6")
    assert done.returncode != 0 and "ValueError in the callback: mine" in done.stderr, done.stderr
