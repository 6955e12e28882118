"""Runs step by step, in memory and with their files."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import maki

BOX = dict(particles_per_side=16, box={"size": "30 Mpc/h"}, deterministic=True)
SPHERE = dict(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=500, truncation_radius=5., softening=0.02)


@pytest.fixture(autouse=True)
def ctrl_c():
    """Counts as in a terminal, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_run_in_memory_is_that_of_the_files(tmp_path):
    settings = dict(BOX, end_redshift=20, image=False, power_spectrum=False)
    result = maki.run(quiet=True, output_directory=tmp_path / "run", **settings)
    written = maki.read(tmp_path / "run/snapshot_000.hdf5")
    written.sort()
    simulation = maki.Simulation(**settings).evolve()
    assert simulation.steps == result.steps > 2 and simulation.ended and result.stopped_by == ""
    assert simulation.redshift == pytest.approx(20)
    numpy.testing.assert_array_equal(simulation.ids, written.ids)
    numpy.testing.assert_allclose(simulation.positions, written.positions, atol=1e-9)
    numpy.testing.assert_allclose(simulation.velocities, written.velocities, rtol=1e-5, atol=1e-5)


def test_linear_growth():
    start = maki.initial_conditions(**BOX)
    simulation = maki.Simulation(start)
    simulation.evolve(redshift=24)
    assert simulation.redshift == pytest.approx(24)

    def displacement(state):
        moved = (state.positions - lattice + 15) % 30 - 15
        return (moved * modes).sum()

    sites = numpy.stack(numpy.meshgrid(*[numpy.arange(16)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 30 / 16
    lattice = sites
    modes = (start.positions - lattice + 15) % 30 - 15
    assert displacement(simulation) / displacement(start) == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("redshift", [40, 33, 28.3])  # those of which log and exp give another last digit, and one more
def test_evolve_ends_at_a_redshift(redshift):
    simulation = maki.Simulation(**BOX, end_redshift=20).evolve(redshift=redshift)
    assert simulation.redshift == pytest.approx(redshift)
    steps = simulation.steps
    assert simulation.evolve(redshift=redshift).steps == steps
    with pytest.raises(maki.Error, match="cannot go to"):
        simulation.step(until=-0.5)


def test_steps_and_state():
    simulation = maki.Simulation(**BOX, end_redshift=30)
    seen = [(state.steps, state.redshift, state.positions.copy()) for state in simulation]
    steps, redshifts, positions = zip(*seen)
    assert list(steps) == sorted(set(steps)) and list(redshifts) == sorted(redshifts, reverse=True)
    assert redshifts[-1] == pytest.approx(30)
    assert not numpy.array_equal(positions[0], positions[-1])
    assert simulation.step() is False and simulation.result.steps == steps[-1]


def test_readings_change_nothing():
    simulation = maki.Simulation(**SPHERE, end_time=0.1)
    positions, own = simulation.positions, simulation.snapshot()
    with pytest.raises(ValueError, match="read-only"):
        positions *= 2
    own.positions *= 2
    own.velocities[:] = 0
    numpy.testing.assert_array_equal(simulation.positions * 2, own.positions)
    numpy.testing.assert_array_equal(simulation.snapshot().positions, positions)
    assert abs((positions - positions.mean(axis=0)).mean()) < 1e-12 and simulation.velocities.any()


def test_evolve_in_pieces_and_energy():
    simulation = maki.Simulation(**SPHERE, end_time=10, output={"energy_interval": 1})
    for time in (0.1, 0.25, 0.5):
        assert simulation.evolve(time=time).time == time
        v, m = simulation.velocities.astype(float), simulation.masses
        kinetic = 0.5 * (m * (v ** 2).sum(axis=1)).sum()
        assert simulation.result.energy.kinetic == pytest.approx(kinetic, rel=1e-5)
        assert simulation.result.time == time and simulation.result.particles == 500
    assert abs(simulation.result.energy.error) < 1e-3
    assert simulation.redshift is None and not simulation.ended


def test_particles_that_are_there_already():
    at, speed = 1., numpy.sqrt(0.5)
    two = maki.snapshot([[-at / 2, 0, 0], [at / 2, 0, 0]], [[0, -speed, 0], [0, speed, 0]], 1.)
    simulation = maki.Simulation(two, softening=1e-4, eta=0.1, threads=1)
    period = 2 * numpy.pi / numpy.sqrt(2)
    simulation.evolve(time=period / 2)
    numpy.testing.assert_allclose(simulation.positions, two.positions[::-1], atol=2e-3)
    simulation.evolve(time=period)
    numpy.testing.assert_allclose(simulation.positions, two.positions, atol=4e-3)


def test_a_callback_stops_a_run_that_goes_on(tmp_path):
    settings = dict(BOX, end_redshift=15, image=False, power_spectrum=False, output_directory=tmp_path / "run")
    result = maki.run(callback=lambda state: state.redshift > 30, quiet=True, **settings)
    assert result.stopped_by == "the callback" and 1 / result.time - 1 <= 30
    assert os.path.exists(tmp_path / "run/stopped.hdf5")
    redshifts = []
    more = maki.resume(tmp_path / "run", lambda state: redshifts.append(state.redshift), quiet=True)
    assert more.stopped_by == "" and more.steps > result.steps
    assert max(redshifts) < 1 / result.time - 1 and redshifts[-1] == pytest.approx(15)
    whole = maki.Simulation(**dict(settings, output_directory=None)).evolve()
    end = maki.read(tmp_path / "run/snapshot_000.hdf5")
    end.sort()
    numpy.testing.assert_allclose(end.positions, whole.positions, atol=1e-3)


def test_a_callback_answers_in_numpy(tmp_path):
    settings = dict(SPHERE, end_time=5, image=False, output_directory=tmp_path / "run", quiet=True)
    assert maki.run(callback=lambda state: state.positions.max() < 0, **settings).stopped_by == "the callback"


def test_warnings_are_told_as_warnings(caplog):
    header = maki.Header()
    header.box_size, header.gravitational_constant, header.omega0, header.hubble = 1., 1., 1., 1.
    header.redshift = 9
    places = numpy.random.default_rng(1).uniform(size=(64, 3)) + 1.5
    with caplog.at_level("INFO", "maki"):
        maki.Simulation(maki.snapshot(places, 0 * places, 1., header=header), end_redshift=8)
    assert [one.levelname for one in caplog.records if "were wrapped" in one.message] == ["WARNING"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_stop_a_run_with_a_restart(tmp_path, name):
    def ask(state):
        os.kill(os.getpid(), getattr(signal, name))

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    settings = dict(SPHERE, end_time=5, image=False, output_directory=tmp_path / "run", quiet=True)
    if name == "SIGINT":
        with pytest.raises(KeyboardInterrupt):
            maki.run(callback=ask, **settings)
    else:
        assert maki.run(callback=ask, **settings).stopped_by == "SIGTERM"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert any(entry.startswith("restart_") for entry in os.listdir(tmp_path / "run"))


def test_what_a_signal_handler_throws_stops_a_run_with_a_restart(tmp_path):
    def late(number, frame):
        raise TimeoutError("late")

    def arm(state):  # steps are under way
        if state.steps == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.05)

    before = signal.signal(signal.SIGALRM, late)
    try:
        with pytest.raises(TimeoutError, match="late"):
            maki.run(callback=arm, **SPHERE, end_time=1000, max_step=0.01, image=False, output_directory=tmp_path / "run", quiet=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert any(entry.startswith("restart_") for entry in os.listdir(tmp_path / "run"))
    assert "TimeoutError" in (tmp_path / "run/log.txt").read_text()


def test_ctrl_c_while_a_step_is_computed():
    simulation = maki.Simulation(**SPHERE, end_time=1000, max_step=0.01)

    def ask():
        while simulation._run.time == 0:  # not simulation.time, which waits for the other thread's step
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=ask, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        simulation.evolve()
    assert simulation.ended and simulation.result.stopped_by == "Ctrl-C"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_stop_a_run_within_a_long_step(tmp_path, name):
    """Sent after the first, second, ... step that is on record, until one does not come just as a long step ends."""
    for wanted in range(1, 20):
        directory = tmp_path / str(wanted)

        def ask():
            record = directory / "metrics.jsonl"
            while not record.exists() or record.read_text().count('"step":') < wanted:
                time.sleep(0.001)
            os.kill(os.getpid(), getattr(signal, name))

        threading.Thread(target=ask, daemon=True).start()
        settings = dict(BOX, eta=0.001, end_redshift=0, image=False, power_spectrum=False, output_directory=directory, quiet=True)
        if name == "SIGINT":
            with pytest.raises(KeyboardInterrupt):
                maki.run(**settings)
        else:
            assert maki.run(**settings).stopped_by == "SIGTERM"
        last = [line for line in (directory / "metrics.jsonl").read_text().splitlines() if '"step":' in line][-1]
        if not json.loads(last)["long"]:
            return
    pytest.fail("each run was stopped where a long step ended")


def test_other_threads_run_meanwhile():
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            done.wait(0.001)

    def counts_meanwhile():
        before = counted[0]
        maki.forces(start, method="ewald", points=start.positions[:2000])
        return counted[0] - before

    start = maki.initial_conditions(particles_per_side=32, box={"size": 50})
    threading.Thread(target=count, daemon=True).start()
    assert any(counts_meanwhile() > 5 for _ in range(20))  # not in each on a busy machine
    done.set()


def test_a_simulation_has_one_configuration(tmp_path):
    (tmp_path / "run.toml").write_text("[run]\nkind = 'isolated'\n[initial]\nkind = 'plummer'\nparticles = 300\n"
                                       "[gravity]\nsoftening = 0.02\n[time]\nend_time = 1\n")
    assert len(maki.Simulation(config=tmp_path / "run.toml").ids) == 300
    with pytest.raises(maki.Error, match="one configuration"):
        maki.Simulation(tmp_path / "run.toml", config=tmp_path / "run.toml")


def test_errors_of_a_run(tmp_path):
    with pytest.raises(maki.Error, match="ends before it starts"):
        maki.Simulation(**BOX, end_redshift=60)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/snapshot_000.hdf5").write_text("")
    with pytest.raises(maki.Error, match="holds a run already"):
        maki.run(**SPHERE, end_time=1, output_directory=tmp_path / "run", quiet=True)
    with pytest.raises(maki.Error, match="nothing to resume"):
        maki.resume(tmp_path)
    with pytest.raises(ValueError, match="from the callback"):
        maki.run(callback=lambda state: int("from the callback"), **SPHERE, end_time=1, output_directory=tmp_path / "b",
                 quiet=True)


def test_the_log_ends_with_the_error_that_ends_a_run(tmp_path):
    settings = dict(SPHERE, end_time=1, image=False, output_directory=tmp_path / "run", quiet=True)
    with pytest.raises(maki.Error, match="it is a directory"):
        maki.run(callback=lambda state: os.makedirs(tmp_path / "run/snapshot_000.hdf5", exist_ok=True), **settings)
    last = (tmp_path / "run/log.txt").read_text().splitlines()[-1]
    assert "The run ends by an error: cannot write" in last and "snapshot_000.hdf5" in last


def test_an_error_of_a_run_with_files_is_not_its_end(tmp_path):
    place = tmp_path / "run"
    run = maki.Simulation(**SPHERE, end_time=0.5, files=True, image=False, output_directory=place, restart_steps=1)
    with pytest.raises(maki.Error, match="cannot go to nan"):
        run.step(until=numpy.nan)
    assert run.step()
    (place / "snapshot_000.hdf5").mkdir()
    with pytest.raises(maki.Error, match="it is a directory"):
        run.evolve()
    (place / "snapshot_000.hdf5").rmdir()
    for call in (run.step, run.stop, run.finish, run.evolve):
        with pytest.raises(maki.Error, match="had an error .*it is a directory.*maki.resume.* goes on from its last"):
            call()
    assert not run.ended and run.result.stopped_by == "an error" and len(run.positions) == 500
    assert not (place / "snapshot_000.hdf5").exists()
    result = maki.resume(place, quiet=True)
    assert result.stopped_by == "" and len(maki.read(place / "snapshot_000.hdf5")) == 500


def test_a_run_that_does_not_fit_is_refused_before_it_begins():
    with pytest.raises(maki.Error, match="memory"):
        maki.Simulation(particles_per_side=8192, box={"size": 100})
    with pytest.raises(maki.Error, match="memory"):
        maki.run(particles_per_side=8192, box={"size": 100}, quiet=True)
    assert maki.Simulation(**SPHERE, end_time=0.01).evolve().ended


def test_runs_over_several_sites_belong_to_the_program(tmp_path):
    (tmp_path / "two.toml").write_text('[sites]\nring = ["a", "b"]\na = {address = "127.0.0.1:9001"}\nb = {}\n')
    start = maki.initial_conditions(**BOX)
    for call in (lambda config: maki.run(config, quiet=True, output_directory=tmp_path / "run", **BOX),
                 lambda config: maki.Simulation(config, **BOX), lambda config: maki.Simulation(start, config=config),
                 lambda config: maki.Simulation(config, files=True, output_directory=tmp_path / "run", **BOX)):
        with pytest.raises(maki.Error, match="several sites are made by the program .*'maki run'"):
            call(tmp_path / "two.toml")
    assert not (tmp_path / "run").exists()


FORKED = """
import os, signal, maki
keys = dict(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=2000, softening=0.01)
start = maki.initial_conditions(threads=THREADS, **keys)
maki.forces(start, softening=0.01, threads=THREADS)
child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        maki.forces(start, softening=0.01, threads=THREADS)
        os._exit(10)
    except maki.Error as error:
        by_number = "before Python starts" in str(error)
        os._exit(11 if "method 'spawn'" in str(error) and by_number == (maki.backend == "cpu") else 12)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


# Where the parent has used a GPU the number of threads does not help.
@pytest.mark.parametrize("threads, code", [(1, 10 if maki.backend == "cpu" else 11), (2, 11)])
def test_a_forked_process_does_not_wait_for_threads(threads, code):
    script = FORKED.replace("THREADS", str(threads))
    assert subprocess.run([sys.executable, "-c", script], timeout=300).returncode == code


def test_time_goes_forward_to_one_moment():
    sphere = maki.Simulation(**SPHERE).evolve(time=0.01)
    for wrong, said in [(dict(time=0.005), "forward only"), (dict(time=numpy.nan), "forward only"),
                        (dict(redshift=1), "has no redshift"), (dict(time=1, redshift=1), "give one of them")]:
        with pytest.raises(maki.Error, match=said):
            sphere.evolve(**wrong)
    assert sphere.evolve(time=0.01).time == pytest.approx(0.01)


@pytest.mark.parametrize("begin", [0., 3., -100.])
def test_small_steps_at_a_late_time(begin):
    one = maki.snapshot([[0., 0, 0]], [[1., 0, 0]], 1.)
    one.header.time = begin
    run = maki.Simulation(one, softening=0.1).evolve(time=begin + 100)
    for more in (1e-8, 2e-8, 3.3e-8):
        time = begin + 100 + more
        assert run.evolve(time=time).time == pytest.approx(time, rel=0, abs=1e-12)
        assert run.positions[0, 0] == pytest.approx(100 + more, rel=0, abs=1e-9)


def test_a_run_that_has_ended_goes_no_further():
    def sphere():
        return maki.Simulation(**SPHERE, end_time=0.02)

    ended = sphere().evolve(time=numpy.inf)
    assert ended.ended and ended.time == pytest.approx(0.02) and ended.steps > 0
    for silent in (None, 0.02, 0.02 * (1 + 1e-12), numpy.inf):
        assert ended.evolve(time=silent) is ended
    assert sphere().evolve(time=1).time == pytest.approx(0.02)
    stopped = sphere().evolve(time=0.01)
    stopped.stop()
    for run, said in [(ended, "ended at 0.02, and was asked to go to 1:"), (stopped, "ended at 0.01, stopped by the caller,")]:
        with pytest.raises(maki.Error, match=said):
            run.evolve(time=1)


def test_a_simulation_in_two_threads():
    alone = maki.Simulation(**BOX, end_redshift=20).evolve()
    shared, seen = maki.Simulation(**BOX, end_redshift=20), []
    threads = [threading.Thread(target=lambda: seen.append([state.positions.sum() for state in shared])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2 and shared.steps == alone.steps
    assert shared.redshift == pytest.approx(20)
