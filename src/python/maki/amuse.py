"""Isolated systems by the names of AMUSE's gravitational dynamics interface (Portegies Zwart & McMillan 2018, Astrophysical
Recipes, IOP; amuse.community.interface.gd). AMUSE itself need not be there.

    gravity = maki.amuse.Maki(eps2=1e-4)
    index = gravity.new_particle(mass, x, y, z, vx, vy, vz)
    gravity.evolve_model(1.0)
    mass, x, y, z, vx, vy, vz, radius = gravity.get_state(index)
    ax, ay, az = gravity.get_gravity_at_point(0, x, y, z)

Calls take numbers or arrays and give numbers or arrays back. Where AMUSE's functions return an error code these raise
maki.Error. Numbers are N-body units (G = 1), or those of `units`, with G in them.
"""
import numpy

from . import _core
from .configuration import settings_of
from .files import snapshot as make_snapshot, isolated_header
from .measure import forces
from .simulation import Simulation

PLACE = ("x", "y", "z")
MOTION = ("vx", "vy", "vz")
FEW = 1000  # particles for which threads would wait for each other longer than they compute
FIELDS = ("mass", *PLACE, *MOTION, "radius")
ELSEWHERE = {"softening": "give eps2, its square", "end_time": "evolve_model() says how far a run goes",
             "interval": "give output.times"}


def _positive(eps2):
    """eps2, squared softening, as a number above 0: point masses would need steps of their own."""
    if 0 < float(eps2) < numpy.inf:
        return float(eps2)
    raise _core.Error(f"eps2 = {eps2} is no squared softening: give a number above 0, such as 1e-4")


class Maki:
    """A gravity code with particles that come, change and go between steps.

    eps2: softening squared (Plummer's law where softening_kind="plummer", else GADGET's spline of as deep a potential).
    units: a maki.Units for masses, lengths and velocities that are not N-body units; time is then length / velocity.
    keys: any other setting of a run, such as theta=0.5, eta=0.1, method="direct", preset="precise".

    Positions are kept in 2^-48 of a box around the set, velocities and masses in single precision: the energy of a
    planetary system is kept to some 1e-5 in a million steps, however short they are.
    """

    def __init__(self, eps2=1e-4, units=None, **keys):
        _core.require_whole_sets("maki.amuse.Maki")
        self.parameters = dict(eps2=_positive(eps2), begin_time=0.)
        self.units = units
        self._refuse(keys)
        self.keys = {"gravity.method": keys.pop("method")} if "method" in keys else {}
        self.keys.update(keys)
        self.initialize_code()

    # ---- the whole code

    def initialize_code(self):
        self._table = {name: numpy.zeros(0) for name in FIELDS}
        self._index = numpy.zeros(0, dtype=numpy.int64)
        self._next = 0
        self._time = self.parameters["begin_time"]
        self._begun_at = self._time
        self._simulation = None
        self._forces = None

    def cleanup_code(self):
        self.initialize_code()

    stop = cleanup_code

    def commit_parameters(self):
        self._time = self.parameters["begin_time"]
        self._changed()

    def recommit_parameters(self):
        self._changed()

    def commit_particles(self):
        """Particles are ready: forces are computed, and errors of what was given come here."""
        self._run()

    def recommit_particles(self):
        self._run()

    def synchronize_model(self):
        """Positions and velocities are always of one time here."""

    def evolve_model(self, time):
        """To this time, exactly. Time goes forward only."""
        if not numpy.isfinite(time):
            raise _core.Error(f"the model cannot go to t = {time:g}: give a time")
        if not time >= self._time:
            raise _core.Error(f"the model is at t = {self._time:g} and was asked to go to {time:g}: time goes forward only")
        if time > self._time:
            simulation = self._run()
            try:
                simulation.evolve(time=float(time) - self._begun_at)
            except BaseException:
                self._changed()  # the next call begins from the particles as they were
                raise
            self._take(simulation)
            self._time = float(time)

    # ---- particles

    def new_particle(self, mass, x, y, z, vx, vy, vz, radius=0.):
        """Adds particles; returns their indices, which stay theirs."""
        given = numpy.broadcast_arrays(*(numpy.asarray(v, dtype=float) for v in (mass, x, y, z, vx, vy, vz, radius)))
        index = self._next + numpy.arange(given[0].size)
        self._next += given[0].size
        for name, values in zip(FIELDS, given):
            self._table[name] = numpy.append(self._table[name], values)
        self._index = numpy.append(self._index, index)
        self._changed()
        return index if given[0].ndim else int(index[0])

    def delete_particle(self, index_of_the_particle):
        keep = numpy.ones(len(self._index), dtype=bool)
        keep[self._rows(index_of_the_particle)] = False
        self._index = self._index[keep]
        self._table = {name: values[keep] for name, values in self._table.items()}
        self._changed()

    def get_number_of_particles(self):
        return len(self._index)

    def get_index_of_first_particle(self):
        return self._one_of(self._index[:1])

    def get_index_of_next_particle(self, index_of_the_particle):
        return self._one_of(self._index[self._rows(index_of_the_particle) + 1:][:1])

    def get_indices(self):
        return self._index.copy()

    def get_state(self, index_of_the_particle):
        """mass, x, y, z, vx, vy, vz, radius"""
        return self._get(index_of_the_particle, FIELDS)

    def set_state(self, index_of_the_particle, mass, x, y, z, vx, vy, vz, radius=None):
        values = (mass, x, y, z, vx, vy, vz) + (() if radius is None else (radius,))
        self._set(index_of_the_particle, FIELDS[:len(values)], values)

    def get_mass(self, index_of_the_particle):
        return self._get(index_of_the_particle, FIELDS[:1])[0]

    def set_mass(self, index_of_the_particle, mass):
        self._set(index_of_the_particle, FIELDS[:1], (mass,))

    def get_position(self, index_of_the_particle):
        return self._get(index_of_the_particle, PLACE)

    def set_position(self, index_of_the_particle, x, y, z):
        self._set(index_of_the_particle, PLACE, (x, y, z))

    def get_velocity(self, index_of_the_particle):
        return self._get(index_of_the_particle, MOTION)

    def set_velocity(self, index_of_the_particle, vx, vy, vz):
        self._set(index_of_the_particle, MOTION, (vx, vy, vz))

    def get_radius(self, index_of_the_particle):
        return self._get(index_of_the_particle, FIELDS[-1:])[0]

    def set_radius(self, index_of_the_particle, radius):
        """Kept, and given back; it means nothing to gravity."""
        self._table["radius"][self._rows(index_of_the_particle)] = radius

    def get_acceleration(self, index_of_the_particle):
        """ax, ay, az"""
        return tuple(self._all_forces()[0][self._rows(index_of_the_particle)].T)

    def get_potential(self, index_of_the_particle):
        """Of all others, per unit mass."""
        return self._all_forces()[1][self._rows(index_of_the_particle)]

    # ---- the field

    def get_gravity_at_point(self, eps, x, y, z):
        """ax, ay, az of all particles at points. eps, which AMUSE lets a code ignore, is ignored: eps2 holds."""
        return tuple(self._shaped(column, numpy.broadcast(x, y, z)) for column in self._forces_at(x, y, z)[0].T)

    def get_potential_at_point(self, eps, x, y, z):
        return self._shaped(self._forces_at(x, y, z)[1], numpy.broadcast(x, y, z))

    # ---- totals of the system

    def get_time(self):
        return self._time

    def get_begin_time(self):
        return self.parameters["begin_time"]

    def set_begin_time(self, time):
        """The model is at this time, where it has not gone on from the one before."""
        if not numpy.isfinite(time):
            raise _core.Error(f"the model cannot begin at t = {time:g}: give a time")
        if self._time == self.parameters["begin_time"]:
            self._time = float(time)
            self._changed()
        self.parameters["begin_time"] = float(time)

    def get_eps2(self):
        return self.parameters["eps2"]

    def set_eps2(self, epsilon_squared):
        self.parameters["eps2"] = _positive(epsilon_squared)
        self._changed()

    def get_total_mass(self):
        return self._table["mass"].sum()

    def get_kinetic_energy(self):
        return 0.5 * (self._table["mass"] * (self._columns(MOTION) ** 2).sum(axis=1)).sum()

    def get_potential_energy(self):
        return 0.5 * (self._table["mass"] * self._all_forces()[1]).sum()

    def get_center_of_mass_position(self):
        return self._mean(PLACE)

    def get_center_of_mass_velocity(self):
        return self._mean(MOTION)

    def get_total_radius(self):
        """From the centre of mass to the particle that is farthest from it."""
        away = self._columns(PLACE) - self.get_center_of_mass_position()
        return numpy.sqrt((away ** 2).sum(axis=1).max())

    # ---- implementation

    @staticmethod
    def _refuse(keys):
        for setting in settings_of(keys):
            name = setting.split("=")[0].split(".")[-1]
            if name in ELSEWHERE:
                raise _core.Error(f"{name} is no key of this interface: {ELSEWHERE[name]}")

    def _changed(self):
        self._simulation = self._forces = None

    def _columns(self, names):
        return numpy.stack([self._table[name] for name in names], axis=-1)

    def _rows(self, index):
        wanted = numpy.asarray(index)
        if not numpy.isin(wanted, self._index).all():
            raise _core.Error(f"there is no particle {numpy.setdiff1d(wanted, self._index)[:1]}: indices are those that "
                              "new_particle() returned")
        return numpy.searchsorted(self._index, wanted)  # they only grow

    @staticmethod
    def _one_of(indices):
        if len(indices) == 0:
            raise _core.Error("there is no such particle: that was the last one")
        return int(indices[0])

    def _get(self, index, names):
        rows = self._rows(index)
        return tuple(self._table[name][rows] for name in names)

    def _set(self, index, names, values):
        rows = numpy.atleast_1d(self._rows(index))
        values = [numpy.broadcast_to(numpy.asarray(value, dtype=float), rows.shape) for value in values]
        for name, value in zip(names, values):
            self._table[name][rows] = value
        self._changed()

    @staticmethod
    def _shaped(values, like):
        return values.reshape(like.shape) if like.ndim else values[0]

    def _settings(self):
        settings = {"gravity.softening": numpy.sqrt(self.parameters["eps2"])}
        if len(self._index) < FEW:
            settings["run.threads"] = 1
        return dict(settings, **self.keys)

    def _need_particles(self):
        if len(self._index) == 0:
            raise _core.Error("there are no particles: new_particle() adds them")

    def _mean(self, columns):
        self._need_particles()
        return tuple(numpy.average(self._columns(columns), axis=0, weights=self._table["mass"]))

    def _snapshot(self):
        self._need_particles()
        header = isolated_header()
        if self.units is not None:
            header.units = self.units
            header.gravitational_constant = 0
        return make_snapshot(self._columns(PLACE), self._columns(MOTION), self._table["mass"], self._index, header)

    def _run(self):
        """A run of what there is now; kept until a particle or a parameter changes. It counts time from its own start."""
        if self._simulation is None:
            self._begun_at = self._time
            # The end also where a file of settings has one.
            settings = {"output.energy_interval": 0, **self._settings(), "time.end_time": 1e300}
            self._simulation = Simulation(self._snapshot(), **settings)
            given = self._columns(MOTION)
            self._rounded_off = given - given.astype(numpy.float32)
        return self._simulation

    def _take(self, simulation):
        present = simulation.snapshot()
        # Velocities with the digits that single precision took off what was given, so that small kicks add up.
        for names, values in ((PLACE, present.positions), (MOTION, present.velocities + self._rounded_off)):
            for name, column in zip(names, values.T):
                self._table[name] = column.copy()
        self._forces = None

    def _all_forces(self):
        if self._forces is None:
            self._forces = forces(self._snapshot(), **self._settings())
        return self._forces

    def _forces_at(self, x, y, z):
        points = numpy.stack([numpy.ravel(numpy.asarray(v, dtype=float)) for v in numpy.broadcast_arrays(x, y, z)], axis=-1)
        return forces(self._snapshot(), points, **self._settings())
