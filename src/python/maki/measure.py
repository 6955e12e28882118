"""What is measured of a Snapshot: forces, groups, power spectra, pictures."""
import os

import numpy

from . import _core
from .configuration import Configuration, for_set, tell
from .files import vectors

AXES = {"x": 0, "y": 1, "z": 2}


def forces(snapshot, points=None, method="run", config=None, **keys):
    """Acceleration (n x 3) and potential (n) of the set's particles, on themselves, or at `points` (m x 3, in its length
    units).

    method: "run" is that of a run, with the settings of `config` and `keys` (preset="precise", softening=...); "direct" is
    the exact sum over an isolated set, "ewald" over a periodic box and its images, in double precision.

    Acceleration is -grad Phi in velocity^2 / length, Phi is in velocity^2, with laplace Phi = 4 pi G (rho - mean rho) in
    comoving coordinates and without a factor of a. Where a particle stands its own term is left out.
    """
    if not isinstance(snapshot, _core.Snapshot):
        raise TypeError(f"forces() takes a maki.Snapshot (maki.snapshot(positions, velocities, masses) makes one), "
                        f"not {type(snapshot).__name__}")
    start = snapshot.header.time
    end = ["time.end_redshift=-0.9"] if snapshot.header.comoving else [f"time.end_time={abs(start) + start + 1!r}"]
    if points is not None:
        points = vectors(points, "points")
    acceleration, potential, notes = _core.forces(snapshot, for_set(snapshot, config, keys, end).core, method, points)
    tell(notes)
    return acceleration, potential


def without_notes(found):
    result, notes = found
    tell(notes)
    return result


def groups(snapshot, linking_length=0.2, minimum=32):
    """Friends-of-friends groups in a periodic box, the longest first, with their properties (docs/groups.md). The linking
    length is in mean distances between particles."""
    return without_notes(_core.groups(snapshot, linking_length, minimum))


def write_groups(path, groups, spectrum=None, overwrite=False):
    """Writes the catalogue in GADGET-4's layout, and the mass function beside it, with what Tinker et al. 2008 expect where
    `spectrum` is a configuration."""
    core = None if spectrum is None else Configuration(spectrum).core
    _core.write_groups(groups, os.fspath(path), core, overwrite)


def expected_mass_function(config, header, masses):
    """dn / d ln M of Tinker et al. 2008 at the header's time, in 1 / length^3, by mass (in mass units)."""
    return _core.expected_masses(Configuration(config).core, header, numpy.ascontiguousarray(masses, dtype=float))


def power(snapshot, mesh=0, folding=2):
    """The power spectrum up to `folding` (a power of two) times the Nyquist wave number of a mesh of so many cells a side
    (even; 0: as many as particles a side), where the box folded onto itself has it: .k, .power, .modes, .folding,
    .shot_noise."""
    return without_notes(_core.power(snapshot, mesh, folding, None, False))


def write_power(path, snapshot, mesh=0, folding=2, overwrite=False):
    """The same as a text file, as maki power writes it; returns it too."""
    return without_notes(_core.power(snapshot, mesh, folding, os.fspath(path), overwrite))


def picture_options(pixels, axis, width, depth):
    if axis not in AXES:
        raise _core.Error(f"axis is {axis!r}: give 'x', 'y' or 'z'")
    if not (16 <= pixels <= 16384 and 0 <= width < numpy.inf and 0 <= depth < numpy.inf):
        raise _core.Error(f"a picture of {pixels} pixels, {width:g} wide and {depth:g} deep: give 16 to 16384 pixels a side, "
                          "and lengths of 0 or more")
    options = _core.PictureOptions()
    options.pixels, options.axis, options.width, options.depth = pixels, AXES[axis], width, depth
    return options


def image(snapshot, pixels=1024, axis="z", width=0., depth=0.):
    """The projected density in units of the mean (of the box through `depth`; of an isolated set's picture), pixels x
    pixels, seen along an axis: the first of the two others (x, y, z) runs along rows, the second upwards (matplotlib:
    origin="lower"). `width` of the part about the middle that is shown and `depth` of the slab are in length units; 0: all."""
    return without_notes(_core.image(snapshot, picture_options(pixels, axis, width, depth)))


def write_image(path, snapshot, pixels=1024, axis="z", width=0., depth=0., overwrite=False):
    """The same as PNG with a colour bar and a scale, as maki image draws it."""
    tell(_core.write_image(snapshot, os.fspath(path), picture_options(pixels, axis, width, depth), overwrite))
