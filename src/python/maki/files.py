"""Particle sets: from arrays, from files and to files."""
import os

import numpy

from . import _core
from .configuration import Configuration, tell


def isolated_header():
    """Of a set without a box, in pure numbers with G = 1."""
    header = _core.Header()
    header.comoving = False
    header.time = 0.
    header.units = _core.Units(1, 1, 1, False)
    header.gravitational_constant = 1.
    return header


def real_numbers(values, name):
    """An array of doubles in a row, of numbers that lose nothing but digits by it."""
    if numpy.ma.is_masked(values):
        raise _core.Error(f"{name} hold masked numbers: give an array without a mask")
    try:
        given = numpy.asarray(values)
        if given.dtype.kind in "biufO":
            return numpy.asarray(given, dtype=numpy.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:  # rows of different lengths
        raise _core.Error(f"{name} are no array of numbers: {error}") from error
    raise _core.Error(f"{name} are of the type {given.dtype}: give real numbers")


def vectors(values, name):
    given = real_numbers(values, name)
    if given.ndim != 2 or given.shape[1] != 3:
        raise _core.Error(f"{name} have the shape {given.shape}: give n x 3 numbers")
    return given


def column(values, name):
    given = real_numbers(values, name)
    if given.ndim != 1:
        raise _core.Error(f"{name} have the shape {given.shape}: give one for each particle")
    return given


def whole_numbers(values, name):
    """An array of unsigned integers, of numbers that lose nothing by it."""
    numbers = column(values, name)
    given = numpy.asarray(values)
    if given.dtype.kind == "f":  # also what numpy makes of [2**63 + 1, 1]
        if not ((numbers >= 0) & (numbers < 2.**53)).all():
            raise _core.Error(f"{name} have to be whole numbers, as floating-point numbers 0 to 2^53: above that these leave "
                              "out integers; give an array of numpy.uint64")
    try:
        whole = given.astype(numpy.uint64)
        if (whole == numbers).all():
            return whole
    except (ValueError, OverflowError):
        pass
    raise _core.Error(f"{name} have to be whole numbers, 0 to 2^64 - 1")


def extra_numbers(values, name):
    """An array of doubles that holds integers exactly."""
    numbers = real_numbers(values, f"numbers of '{name}'")
    if numpy.asarray(values).dtype.kind in "iuO" and (abs(numbers) >= 2.**53).any():
        raise _core.Error(f"'{name}' has numbers of 2^53 or more, which doubles round: add them to the file with h5py")
    return numbers


def snapshot(positions, velocities, masses, ids=None, header=None):
    """A Snapshot of arrays: n x 3 positions and velocities, n masses (or one for all), n ids (1, 2, ... where there are
    none). Without a header the set is isolated, in pure numbers with G = 1; Header() is that of a comoving box, in Mpc/h,
    1e10 Msun/h and km/s, whose box_size, time and cosmology are yours to set."""
    positions, velocities = vectors(positions, "positions"), vectors(velocities, "velocities")
    masses = real_numbers(masses, "masses")
    if masses.shape not in ((), (1,), positions.shape[:1]):
        raise _core.Error(f"masses have the shape {masses.shape} (there are {len(positions)} particles): give one for each "
                          "particle, or one number for all")
    masses = numpy.ascontiguousarray(numpy.broadcast_to(masses, positions.shape[:1]))
    if ids is not None:
        ids = whole_numbers(ids, "ids")
    return _core.Snapshot(positions, velocities, masses, ids, header or isolated_header())


def check_what_is_put(name, check):
    """Arrays that are put into a Snapshot are held to the same as those of snapshot()."""
    plain = getattr(_core.Snapshot, name)
    setattr(_core.Snapshot, name, property(plain.fget, lambda own, values: plain.fset(own, check(values, name)),
                                           doc=plain.__doc__))


for _name, _check in dict(positions=vectors, velocities=vectors, masses=column, ids=whole_numbers).items():
    check_what_is_put(_name, _check)

# Copies and pickles, with what read() tells of the file.
_core.Snapshot.__reduce__ = lambda own: (
    _core.Snapshot, (own.positions, own.velocities, own.masses, own.ids, own.header), vars(own))


def read(path):
    """The Snapshot in a file: GADGET's HDF5 (of GADGET-2, 3, 4, AREPO, SWIFT's by the same names, Maki), of one file or
    many, and GADGET's binary types 1 and 2 of either byte order. All types of particles are one set. What was assumed or
    repaired is told to the logger "maki"."""
    found, form, files, counts, notes = _core.read(os.fspath(path))
    found.format, found.files, found.counts = form, files, counts
    tell(notes)
    return found


def read_dataset(path, name):
    """One more dataset of /PartType1 of an HDF5 file, flattened."""
    return _core.read_dataset(os.fspath(path), name)


def read_configuration(path):
    """The configuration that a snapshot of Maki holds, as TOML; "" for others."""
    return _core.read_configuration(os.fspath(path))


def describe(path):
    """What is in a file, as lines: maki info."""
    return _core.describe(os.fspath(path))


def write(path, snapshot, *, format="hdf5", files=1, compression=0, coordinates="double",
          velocities="float", fields=None, layout="gadget4", id_bits=0, big_endian=False, overwrite=False, extra=None,
          configuration=None):
    """Writes a Snapshot: format "hdf5" (GADGET-4's layout), "gadget1" or "gadget2". `files` above 1 divides it, compression
    (1 to 9), fields, layout and `extra`, {"Name": n or n x 3 numbers}, are for HDF5; coordinates, velocities, fields and layout
    are those of output.coordinates and so on in a configuration; id_bits is 32, 64 or 0 (32 where all fit). The
    configuration's text goes into the file. Positions outside of a periodic box are wrapped in the file, and sets that no file
    may hold (a place that is no number) are refused. Returns the names of what was written; where that fails, nothing is left."""
    options = _core.WriteOptions()
    given = dict(format=format, files=files, compression=compression, coordinates=coordinates,
                 velocities=velocities, layout=layout, id_bits=id_bits, big_endian=big_endian, overwrite=overwrite)
    if fields is not None:
        given["fields"] = list(fields)
    for name, value in given.items():
        setattr(options, name, value)
    extras = [(name, extra_numbers(values, name)) for name, values in (extra or {}).items()]
    text = "" if configuration is None else Configuration(configuration).toml()
    names, notes = _core.write(os.fspath(path), snapshot, options, extras, text)
    tell(notes)
    return names


def quantity(snapshot, name):
    """Positions, velocities or masses of a Snapshot as unyt arrays, with h put in: comoving Mpc, peculiar km/s, Msun.
    Needs unyt (pip install unyt)."""
    try:
        import unyt
    except ImportError as error:
        raise ImportError("maki.quantity gives arrays of unyt: pip install unyt") from error
    units, header = snapshot.header.units, snapshot.header
    if units.pure:
        raise _core.Error("the numbers of this set have no units")
    over_h = header.hubble if units.with_h else 1.
    if not over_h > 0:
        raise _core.Error(f"header.hubble is {over_h:g}, and lengths and masses of this set carry 1/h")
    factor, cgs, usual = {
        "positions": (units.length_cgs / over_h, "cm", "Mpc"),
        "velocities": (units.velocity_cgs, "cm/s", "km/s"),
        "masses": (units.mass_cgs / over_h, "g", "Msun"),
    }[name]
    return unyt.unyt_array(getattr(snapshot, name).astype(float), unyt.unyt_quantity(factor, cgs)).to(usual)
