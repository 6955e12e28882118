"""Runs: step by step in memory, or with their output directory as `maki run` writes it."""
import contextlib
import logging
import os
import signal
import threading

import numpy

from . import _core
from .configuration import Configuration, for_set, settings_of

log = logging.getLogger("maki")


@contextlib.contextmanager
def ctrl_c_stops(simulation):
    """Ends a run where Ctrl-C comes."""
    try:
        yield
    except KeyboardInterrupt:
        simulation.stop("Ctrl-C")
        raise


class Simulation:
    """A run that is made step by step.

    Simulation("quickstart.toml", seed=7)           a configuration (or config="quickstart.toml"), with its own initial conditions
    Simulation(snapshot, end_redshift=0)            particles that are there already; settings from keys and `config`

    Nothing is written unless `files` is true: then all that `maki run` writes goes into run.output_directory. `for state in
    simulation` makes a step at a time, up to where momenta and positions can be of one time, and gives the simulation itself
    back; evolve() makes as many as are needed. A run of isolated particles that are there has no end unless end_time gives
    one. Between steps the particles are in .positions, .velocities, .masses and .ids, read-only and in the order of their
    ids, and .snapshot() is all of it. Of several threads one at a time makes a step or looks.
    """

    def __init__(self, source=None, *, config=None, files=False, quiet=True, **keys):
        if config is not None and not isinstance(source, _core.Snapshot):
            if source is not None:
                raise _core.Error("a Simulation has one configuration: give it first, or as config=..., and not both")
            source = config
        if isinstance(source, _core.Snapshot):
            if files:
                raise _core.Error("a run with files begins with a file: maki.write() the set, and give "
                                  "initial={'kind': 'file', 'file': its name}")
            self.configuration = for_set(source, config, keys, ends_of(source) if config is None else ())
            self._begin(_core.run_in_memory(self.configuration.core, source))
        else:
            self.configuration = Configuration(source, **keys)
            core = self.configuration.core
            self._begin(_core.run_with_files(core, quiet) if files else _core.run_in_memory(core, None))

    def _begin(self, run):
        self._run = run
        self._state = self._finished = None
        self._one_thread = threading.RLock()  # a callback looks while its thread makes a step
        self._asked = None
        self._watched(run.begin)

    def _watched(self, call):
        """Makes a call, and tells what the run had to say."""
        with self._one_thread:
            self._state = None
            try:
                return call()
            finally:
                for text in self._run.messages():
                    log.log(logging.WARNING if "Warning: " in text else logging.INFO, "%s", text)

    def __iter__(self):
        while self.step():
            yield self
        if not self.result.stopped_by:
            yield self

    def step(self, until=None):
        """To where the next long step ends, at most to `until` (scale factor, or time). Whether the run goes on. Ctrl-C ends
        it after the present step, also within a long one, with a restart where it has files."""
        with self._one_thread:
            if self._finished:
                return False
            with ctrl_c_stops(self):
                more = self._watched(lambda: self._run.long_step(float("inf") if until is None else until))
            if not more:
                self.finish()
            return more

    def evolve(self, *, time=None, redshift=None):
        """To a time, a redshift, or the end of the run; returns the simulation. A run that reaches its end on the way, or is
        stopped there, is before that time; one that had ended before the call goes no further, and that is an error."""
        if redshift is not None:
            if time is not None or not self.comoving:
                raise _core.Error("evolve() goes to a time, or in a box to a redshift: give one of them"
                                  + ("" if self.comoving else " (an isolated system has no redshift)"))
            time = 1 / (1 + redshift)
        if time is not None and not time >= self.time - 1e-9 * abs(self.time):
            raise _core.Error(f"the run is at {self.time:g} and was asked to go to {time:g}: time goes forward only")
        # A redshift's scale factor comes back from the run's own logarithm with another last digit.
        least = numpy.inf if time is None or time == numpy.inf else time - 1e-9 * abs(time)
        if self.time < least < numpy.inf and (self._finished or self.ended):
            by = self.result.stopped_by
            raise _core.Error(f"the run ended at {self.time:g}{by and ', stopped by ' + by}, and was asked to go to {time:g}: a "
                              "Simulation of its snapshot() goes on, or maki.resume() where it has files")
        before = -numpy.inf
        with ctrl_c_stops(self):  # also between two steps
            while before < self.time < (least if self.comoving or time is None else time):
                before = self.time
                if not self.step(until=time):
                    break
        return self

    def stop(self, reason="the caller"):
        """Ends the run where it is; one with files writes a restart, from which maki.resume() goes on."""
        with self._one_thread:
            if not self._finished:
                self._watched(lambda: self._run.stop(reason))
                self.finish()

    def finish(self):
        """Ends the log of a run with files, once it has come to its end. Returns the Result."""
        with self._one_thread:
            if not self._finished:
                self._finished = self._run.finish()
            return self._finished

    def snapshot(self):
        """The present particles, by id, with momenta of the same time: a set of the caller's own."""
        with self._one_thread:
            return self._run.snapshot() if self._state is None else self._state.copy()

    def _present(self, name):
        """An array of the state that all readings share until the next step; therefore it is read-only."""
        with self._one_thread:
            if self._state is None:
                self._state = self._run.snapshot()
            values = getattr(self._state, name)
        values.flags.writeable = False
        return values

    @property
    def time(self):
        """Scale factor of a box, else the time."""
        with self._one_thread:
            return self._run.time

    @property
    def comoving(self):
        return self._run.comoving

    @property
    def redshift(self):
        """Of a box; None of an isolated set."""
        return 1 / self.time - 1 if self.comoving else None

    @property
    def result(self):
        """Steps, energies and the like, so far."""
        with self._one_thread:
            return self._finished or self._run.result

    @property
    def steps(self):
        return self.result.steps

    @property
    def ended(self):
        with self._one_thread:
            return self._run.ended

    positions = property(lambda self: self._present("positions"), doc="n x 3, length units, comoving")
    velocities = property(lambda self: self._present("velocities"), doc="n x 3, peculiar, velocity units")
    masses = property(lambda self: self._present("masses"))
    ids = property(lambda self: self._present("ids"))

    def __repr__(self):
        moment = f"z = {self.redshift:.4g}" if self.comoving else f"t = {self.time:.6g}"
        return f"<maki.Simulation: step {self.steps}, {moment}>"


def ends_of(snapshot):
    """A run of isolated particles that are there has no end where none is given."""
    return ["time.end_time=1e300"] if not snapshot.header.comoving else []


@contextlib.contextmanager
def sigterm_asks(simulation):
    """SIGTERM lets the step end, and then the run, as Ctrl-C does. Python has signals in its main thread only."""
    if threading.current_thread() is not threading.main_thread() or _core.ranks() > 1:  # over ranks the run sees to it
        yield
        return

    def ask(number, frame):
        simulation._asked = "SIGTERM"
        simulation._run.leave_long_step()

    before = signal.signal(signal.SIGTERM, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


GO_ON, STOP, EXCEPTION = range(3)  # answers


def _act_together(simulation, own, reason):
    """Stops the run with a restart where the answer of a rank asks for it. Returns the answer of all ranks, and its reason."""
    answer, reason = simulation._run.agree(own, reason)
    if answer != GO_ON:
        simulation.stop(reason)
    return answer, reason


def _ask(simulation, callback):
    """Asks the callback. What it throws on a rank ends the run on all, with a restart too, and comes out on that rank; on
    others it is a maki.Error."""
    try:
        wish = callback(simulation) if callback is not None else None
    except BaseException as error:
        reason = "Ctrl-C" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__} in the callback"
        if _core.ranks() > 1:  # where others wait for this rank within the callback, the job may end before Python tells
            log.error("%s: %s", reason, error)
        _act_together(simulation, EXCEPTION, reason)
        raise
    if isinstance(wish, (bool, numpy.bool_)) and not wish:
        own = STOP, "the callback"
    else:
        own = (STOP, simulation._asked) if simulation._asked else (GO_ON, "")
    answer, reason = _act_together(simulation, *own)
    if answer == EXCEPTION:
        raise _core.Error(f"a callback has ended the run ({reason}): the message of that rank tells more")


def _all_steps(simulation, callback):
    with sigterm_asks(simulation):
        try:
            for state in simulation:
                _ask(state, callback)
        except _core.Error:
            raise
        except BaseException as error:  # of a signal's handler; over ranks the others would wait for this one
            with contextlib.suppress(_core.Error):  # such as of a run whose own error this is
                if _core.ranks() == 1:
                    simulation.stop("Ctrl-C" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
            raise
    return simulation.finish()


def run(source=None, callback=None, *, quiet=False, **keys):
    """Runs a configuration to its end, with all the files that `maki run` writes, and returns the Result.

    callback(simulation) is called after each step and may look at the state; where it returns False the run stops, with a
    restart, as it does where it throws; of several ranks one suffices. quiet: no lines on standard output, only in the log.
    """
    return _all_steps(Simulation(source, files=True, quiet=quiet, **keys), callback)


def resume(directory, callback=None, *, quiet=False, **keys):
    """Goes on with a run that was stopped or killed, as `maki resume`; keys change settings from here on."""
    simulation = Simulation.__new__(Simulation)
    simulation.configuration = None
    simulation._begin(_core.resume(os.fspath(directory), settings_of(keys), quiet))
    return _all_steps(simulation, callback)
