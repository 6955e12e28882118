"""The configuration of a measured run: the universe of quickstart.toml in a box of as many mean distances."""
import math

NAMES = ["amsterdam", "tokyo", "edinburgh", "espoo"]

UNIVERSE = """[run]
name = "wan_efficiency"
overwrite = true
preset = "{preset}"

[box]
size = "{box} Mpc/h"

[cosmology]
omega0 = 0.308
omega_lambda = 0.692
omega_baryon = 0.0482
hubble_param = 0.678
sigma8 = 0.829
n_s = 0.961

[initial]
particles_per_side = {side}
redshift = {redshift}
seed = 20110

[gravity]
softening = "26 kpc/h"
mesh = {mesh}

[time]
eta = 0.4
end_redshift = {end}

[output]
redshifts = []
power_spectrum = false
image = false
"""

SITES = """
[sites]
ring = [{ring}]
key = "{key}"
{tables}
[sites.path]
streams = {streams}
pacing = "{pacing:.0f} Mbit/s"
congestion = "{congestion}"
"""

LONG_STEP = {"fast": 0.04, "standard": 0.02, "precise": 0.01}  # d ln a of steps while little moves


def universe(options, mesh):
    """About options.steps steps: they are of the preset's longest while the universe is young."""
    if options.config:
        return open(options.config).read()
    end = (1 + options.redshift) * math.exp(-options.steps * LONG_STEP[options.preset]) - 1
    return UNIVERSE.format(preset=options.preset, box=50 * options.particles / 64, side=options.particles,
                           redshift=options.redshift, mesh=mesh, end=f"{end:.6g}")


def sites(options, count, addresses, key):
    """[sites] of that many; addresses as the testbed gives them."""
    names = NAMES[:count]
    tables = "".join(f'[sites.{name}]\naddress = "{address}:6000"\n' for name, address in zip(names, addresses))
    return SITES.format(ring=", ".join(f'"{n}"' for n in names), key=key, tables=tables, streams=options.streams,
                        pacing=options.pacing * options.rate, congestion=options.congestion)
