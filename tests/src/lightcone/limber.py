#!/usr/bin/env python3
"""Usage: limber.py DIRECTORY   C_l of the shells of all light cones of a run against Limber's approximation.

C_l of each map by healpy's anafast, without pixel window, the mean of all observers; beside it the integral of W(r)^2 / r^2
P((l + 1/2) / r) dr (Limber 1953, ApJ 117, 134; LoVerde & Afshordi 2008, PRD 78, 123506) with W = 3 r^2 / (far^3 - near^3), and P from
the run's own power_NNN.txt, between whose redshifts ln P is linear in ln a. Both have their discreteness noise, which in a set that began
as a lattice is less than Poisson's. Limber's approximation leaves out waves along the line of sight, which at the edges of a shell of
thickness d takes 1 / (d k) of the signal. Prints bands of l, and exits with 1 where one differs by more than 3 %, with 77 where a package
is missing.
"""
import glob
import sys

try:
    import healpy
    import numpy as np
except ImportError as missing:
    print(missing)
    sys.exit(77)

LIMIT = 0.03
BANDS = [(60, 100), (100, 140), (140, 180)]


def read_power(path):
    """Scale factor, wave numbers, and power."""
    with open(path) as file:
        time = next(float(line.split()[2]) for line in file if line.startswith("# Time "))
    return time, *np.loadtxt(path, usecols=(0, 2), unpack=True)


def power_function(directory):
    """P(k, a) from all spectra of the run."""
    tables = sorted((read_power(path) for path in glob.glob(f"{directory}/power_*.txt")), key=lambda table: table[0])
    ln_a = np.log([a for a, _, _ in tables])

    def power(k, a):
        ln_p = [np.interp(np.log(k), np.log(ks), np.log(ps)) for _, ks, ps in tables]
        return np.exp(np.interp(np.log(a), ln_a, ln_p))

    return power


def distance_scale(header):
    """Scale factor by distance in the shell, linear between its edges: light's a(r) is smooth."""
    edges = np.array([header["DISTNEAR"], header["DISTFAR"]])
    factors = 1 / (1 + np.array([header["ZNEAR"], header["ZFAR"]]))
    return lambda r: np.interp(r, edges, factors)


def limber(l, header, power):
    near, far = header["DISTNEAR"], header["DISTFAR"]
    r = near + (far - near) * (np.arange(200) + 0.5) / 200
    window = 3 * r**2 / (far**3 - near**3)
    scale = distance_scale(header)
    values = [window[i] ** 2 / r[i] ** 2 * power((l + 0.5) / r[i], scale(r[i])) for i in range(len(r))]
    return np.sum(values) * (far - near) / len(r)


def measured(path):
    mass, header = healpy.read_map(path, h=True, dtype=np.float64)
    header = dict(header)
    nside = healpy.get_nside(mass)
    spectrum = healpy.anafast(mass / mass.mean() - 1, lmax=BANDS[-1][1])
    l, side = np.arange(len(spectrum)), healpy.nside2resol(nside)
    pixel_window = np.exp(-l * (l + 1) * side**2 / 12)  # squared; of squares to second order in l: healpy loads its own from the web
    return spectrum / pixel_window, header


def main():
    directory = sys.argv[1]
    power = power_function(directory)
    worst = 0
    for shell in sorted(path.rsplit("/", 1)[1] for path in glob.glob(f"{directory}/lightcone_00/map_*.fits")):
        maps = [measured(path) for path in sorted(glob.glob(f"{directory}/lightcone_*/{shell}"))]
        mean, header = np.mean([spectrum for spectrum, _ in maps], axis=0), maps[0][1]
        for low, high in BANDS:
            l = np.arange(low, high)
            weights = (2 * l + 1) / np.sum(2 * l + 1)
            expected = np.sum(weights * [limber(one, header, power) for one in l])
            found = np.sum(weights * mean[l])
            scatter = np.std([np.sum(weights * one[l]) for one, _ in maps]) / np.sqrt(len(maps))
            worst = max(worst, abs(found / expected - 1))
            print(f"{shell} l {low}-{high}: C_l {found:.4e}, Limber {expected:.4e}, {100 * (found / expected - 1):+.2f} %, "
                  f"error of the mean of {len(maps)} observers {100 * scatter / expected:.2f} %")
    return 1 if worst > LIMIT else 0


sys.exit(main())
