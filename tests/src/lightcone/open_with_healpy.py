#!/usr/bin/env python3
"""Usage: open_with_healpy.py FOLDER   Opens maps and particles of a light cone, and compares them with each other.

Exit status 77: a package is missing."""
import sys

try:
    import h5py
    import healpy
    import numpy as np
except ImportError as missing:
    print(missing)
    sys.exit(77)

folder = sys.argv[1]
for shell in ("000", "001"):
    found, header = healpy.read_map(f"{folder}/map_{shell}.fits", h=True, dtype=np.float64)
    keys = dict(header)
    nside = healpy.get_nside(found)
    assert nside == 32 and keys["NSIDE"] == 32 and keys["ORDERING"] == "RING" and keys["PIXTYPE"] == "HEALPIX"
    with h5py.File(f"{folder}/conesnap_{shell}.hdf5") as file:
        cone = file["Header"].attrs
        assert np.allclose([keys["DIRX"], keys["DIRY"], keys["DIRZ"]], cone["Direction"], atol=1e-12)
        assert abs(keys["OPENING"] - cone["OpeningAngle"]) < 1e-9
    assert keys["TUNIT1"] == "1e10 Msun/h", keys["TUNIT1"]
    with h5py.File(f"{folder}/conesnap_{shell}.hdf5") as file:
        places = file["PartType1/Coordinates"][:]
        mass = file["Header"].attrs["MassTable"][1]
        near, far = file["Header"].attrs["ShellDistances"]
        scale = file["PartType1/Ascale"][:]
    distance = np.linalg.norm(places, axis=1)
    assert near - 1e-9 <= distance.min() and distance.max() <= far + 1e-9
    assert abs(keys["DISTNEAR"] - near) < 1e-9 and abs(keys["DISTFAR"] - far) < 1e-9
    assert np.all(np.diff(scale[np.argsort(distance)]) <= 1e-9), "what is farther was met earlier"
    counts = np.bincount(healpy.vec2pix(nside, *places.T), minlength=12 * nside**2)
    assert np.allclose(found, counts * mass, rtol=1e-6, atol=0)
    print(f"shell {shell}: {len(places)} particles, healpy's pixels are those of the map")
