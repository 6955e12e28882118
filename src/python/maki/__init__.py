"""Maki: gravity of many particles, periodic boxes (TreePM) and isolated systems (tree or direct sum).

    snapshot = maki.read("snapshot_003.hdf5")                   # files
    snapshot = maki.initial_conditions("quickstart.toml")       # or made here
    simulation = maki.Simulation(snapshot, end_redshift=0)      # a run in memory
    for state in simulation: print(state.redshift)
    acceleration, potential = maki.forces(snapshot, points)
    groups, power, image = maki.groups(snapshot), maki.power(snapshot), maki.image(snapshot)

docs/python.md of the source tells more. Numbers are in the units of their set (snapshot.units); errors are maki.Error with
the message of the program.
"""
import os as _os

# As in the program: threads that wait at a barrier soon let others run. libgomp reads this once, when it is loaded.
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & _os.environ.keys():
    _os.environ["GOMP_SPINCOUNT"] = "2000"
    from . import _core
    del _os.environ["GOMP_SPINCOUNT"]
else:
    from . import _core

from ._core import DeviceError, Error, Groups, Header, Power, Result, Snapshot, Units, backend, version_text
from ._core import describe_keys
from .configuration import Configuration, initial_conditions
from .measure import expected_mass_function, forces, groups, image, power, write_groups, write_image, write_power
from .files import describe, quantity, read, read_configuration, read_dataset, snapshot, write
from .simulation import Simulation, resume, run

__version__ = _core.version
for _one in (DeviceError, Error, Groups, Header, Power, Result, Snapshot, Units):
    _one.__module__ = "maki"
__all__ = ["Configuration", "DeviceError", "Error", "Groups", "Header", "Power", "Result", "Simulation", "Snapshot",
           "Units", "backend", "describe", "describe_keys", "expected_mass_function", "forces", "groups", "image",
           "initial_conditions", "power", "quantity", "read", "read_configuration", "read_dataset", "resume", "run",
           "snapshot", "version_text", "write", "write_groups", "write_image", "write_power"]
