"""How far power spectra of one universe are apart: python3 bench/compare_power.py REFERENCE.txt OTHER.txt ...

Power spectra as `maki run` and `maki power` write them. Prints the largest relative difference of P up to half the
Nyquist wave number of the particles (and where it is), that of all bins, and the mean. With --limit the largest
difference that is allowed up to there: above it the exit status is 1, as it is where a ratio is no finite number.
"""
import argparse
import math
import sys


def read(path):
    """Numbers of the header by name, and rows (k, P, modes)."""
    header, rows = {}, []
    with open(path) as file:
        for line in file:
            words = line.lstrip("#").split()
            if not line.startswith("#"):
                rows.append((float(words[0]), float(words[2]), int(words[3])))
            elif len(words) == 2 and words[0] in ("Time", "BoxSize", "MeshSize", "ShotNoise"):
                header.setdefault(words[0], float(words[1]))
    if not rows:
        sys.exit(f"{path} holds no power spectrum")
    return header, rows


def nyquist(header):
    """Of the lattice of particles: pi over their mean distance."""
    particles = header["BoxSize"] ** 3 / header["ShotNoise"]
    return math.pi * particles ** (1 / 3) / header["BoxSize"]


def compare(reference, other, share):
    (header, rows), (other_header, other_rows) = read(reference), read(other)
    if not abs(header["Time"] / other_header["Time"] - 1) <= 1e-6:
        sys.exit(f"{reference} and {other} are of different times: {header['Time']} and {other_header['Time']}")
    if [(round(k, 6), modes) for k, _, modes in rows] != [(round(k, 6), modes) for k, _, modes in other_rows]:
        sys.exit(f"{reference} and {other} have different bins: measure them with the same mesh")
    limit = share * nyquist(header)
    differences = [(abs(b / a - 1) if a else math.nan, k) for (k, a, _), (_, b, _) in zip(rows, other_rows)]
    odd = [k for difference, k in differences if not math.isfinite(difference)]
    if odd:
        sys.exit(f"{other} over {reference} is no finite number in {len(odd)} of {len(differences)} bins, "
                 f"first at k = {odd[0]:.4g}")
    below = [d for d in differences if d[1] <= limit * (1 + 1e-9)]
    if not below:
        sys.exit(f"no bin of {reference} is below k = {limit:.4g}")
    worst, where = max(below)
    print(f"{other}: largest difference {worst:.3e} at k = {where:.4g} up to k = {limit:.4g} "
          f"({share:g} of the Nyquist wave number, {len(below)} bins), mean {sum(d for d, _ in below) / len(below):.3e}; "
          f"of all {len(differences)} bins {max(differences)[0]:.3e}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("others", nargs="+")
    parser.add_argument("--share", type=float, default=0.5, help="of the Nyquist wave number; default 0.5")
    parser.add_argument("--limit", type=float, help="largest difference that is allowed, such as 1e-3")
    given = parser.parse_args()
    worst = max(compare(given.reference, other, given.share) for other in given.others)
    return 1 if given.limit is not None and not worst <= given.limit else 0


if __name__ == "__main__":
    sys.exit(main())
