"""A small universe from its initial conditions to today: a run, its groups, spectrum and picture, and forces at points beside
exact sums. Run it as it is, or cell by cell as a notebook (Jupytext, VS Code, Spyder know the marks).

    python universe.py [PARTICLES_A_SIDE [FOLDER]]
"""
# %% What is needed
import pathlib
import sys

import matplotlib
if __name__ == "__main__" and not hasattr(sys, "ps1"):
    matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maki

side = int(sys.argv[1]) if len(sys.argv) > 1 else 64
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")

# %% Initial conditions
start = maki.initial_conditions(particles_per_side=side, box={"size": "50 Mpc/h"}, seed=20110, redshift=49)
print(start, start.header.units)

# %% Forces at points, by tree and mesh as in a run, and by Ewald's sum over all images
points = np.random.default_rng(1).uniform(0, start.header.box_size, size=(200, 3))
acceleration, potential = maki.forces(start, points)
exact, exact_potential = maki.forces(start, points, method="ewald")
error = np.linalg.norm(acceleration - exact, axis=1) / np.linalg.norm(exact, axis=1)
print(f"box: error of the force at points {np.median(error):.1e} (median), {np.percentile(error, 99):.1e} (99 %); "
      f"of the potential {np.abs(potential - exact_potential).max() / exact_potential.std():.1e} of its rms, at most")

# %% Forces of an isolated cluster, beside a direct sum over all pairs
cluster = maki.initial_conditions(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=20000, softening=0.01,
                                  truncation_radius=10.)
points = np.random.default_rng(2).normal(size=(500, 3))
acceleration, potential = maki.forces(cluster, points, softening=0.01)
exact, exact_potential = maki.forces(cluster, points, softening=0.01, method="direct")
error = np.linalg.norm(acceleration - exact, axis=1) / np.linalg.norm(exact, axis=1)
print(f"cluster: error of the force at points {np.median(error):.1e} (median), {np.percentile(error, 99):.1e} (99 %); "
      f"of the potential {np.abs(potential / exact_potential - 1).max():.1e}, at most")

# %% A run, with a look at it after each step
simulation = maki.Simulation(start, end_redshift=0)
spread = []
for state in simulation:
    spread.append((1 / state.time - 1, state.velocities.std() * np.sqrt(3)))
today = simulation.snapshot()
print(simulation, simulation.result)

# %% What is in it
groups = maki.groups(today)
power, power_then = maki.power(today), maki.power(start)
picture = maki.image(today, pixels=512, depth=15.)
print(groups, "the heaviest has", f"{groups.mass[0] * 1e10:.2e} Msun/h" if len(groups) else "no group")

# %% Plots
figure, axes = plt.subplots(2, 2, figsize=(11, 10), layout="constrained")
box = today.header.box_size
axes[0, 0].imshow(np.log10(np.maximum(picture, 1e-2)), origin="lower", extent=(0, box, 0, box), cmap="magma")
near = np.abs(groups.position[:, 2] - box / 2) < 7.5
axes[0, 0].scatter(*groups.position[near, :2].T, s=3 * groups.mass[near] ** 0.5, facecolors="none", edgecolors="cyan", lw=0.7)
axes[0, 0].set(title="density of a slab of 15 Mpc/h, z = 0, with groups", xlabel="x, Mpc/h", ylabel="y, Mpc/h")

for one, label in ((power_then, "z = 49"), (power, "z = 0")):
    axes[0, 1].loglog(one.k, one.power, label=label)
axes[0, 1].axhline(power.shot_noise, color="grey", lw=0.8, ls=":", label="shot noise")
axes[0, 1].set(title="power spectrum", xlabel="k, h/Mpc", ylabel="P(k), (Mpc/h)$^3$")
axes[0, 1].xaxis.set_minor_formatter("")
axes[0, 1].legend()

mass = np.logspace(10.5, 14.5, 17)
counts = np.histogram(groups.sphere_mass["Mean200"] * 1e10, mass)[0]
middle = np.sqrt(mass[1:] * mass[:-1])
found = counts / np.diff(np.log(mass)) / box ** 3
axes[1, 0].errorbar(middle, found, found / np.sqrt(np.maximum(counts, 1)), fmt="o", label="groups")
spectrum = maki.Configuration(box={"size": "50 Mpc/h"})
axes[1, 0].loglog(middle, maki.expected_mass_function(spectrum, today.header, middle / 1e10), label="Tinker et al. 2008")
axes[1, 0].set(title="mass function", xlabel="$M_{200m}$, Msun/h", ylabel="dn/dlnM, (h/Mpc)$^3$", xscale="log", yscale="log",
               ylim=(1e-6, None))
axes[1, 0].legend()

axes[1, 1].loglog(*(np.array(spread) + [1, 0]).T)
axes[1, 1].set(title="rms velocity", xlabel="1 + z", ylabel="km/s")
axes[1, 1].invert_xaxis()
figure.savefig(folder / "universe.png", dpi=110)
print("wrote", folder / "universe.png")
