"""Opens a snapshot with h5py, yt, pynbody or swiftsimio and compares what they show with what was written.

usage: open_with_python.py PACKAGE FILE EXPECTED.json
Exit code 0: all agrees; 1: something differs; 77: the package cannot be imported.
"""

import importlib
import json
import sys
import warnings

package, path, expected_path = sys.argv[1:4]
try:
    np = importlib.import_module("numpy")
    module = importlib.import_module(package)
except ImportError as error:
    print(error)
    sys.exit(77)

with open(expected_path) as file:
    expected = json.load(file)
failures = []
velocity_tolerance = expected["velocity_tolerance"]


def compare(what, found, wanted, tolerance=1e-4):
    if not np.allclose(np.asarray(found, dtype=float), wanted, rtol=tolerance):
        failures.append(f"{what}: {package} shows {found}, written was {wanted}")


def with_h5py():
    with module.File(path, "r") as file:
        if "Scale-factor" in file["Header"].attrs:
            return swift_with_h5py(file)
        header, particles = file["Header"].attrs, file["PartType1"]
        a, h = header["Time"], header["HubbleParam"]

        def physical(name):
            data = particles[name]
            scale = data.attrs["to_cgs"] * a ** data.attrs["a_scaling"] * h ** data.attrs["h_scaling"]
            return data[expected["row"]] * scale

        for name, key in [("Omega0", "omega0"), ("OmegaLambda", "omega_lambda"), ("HubbleParam", "hubble"),
                          ("Redshift", "redshift"), ("BoxSize", "box")]:
            compare(name, header[name], expected[key])
        compare("position", physical("Coordinates") / 3.0856776e24 / a * h, expected["position"])
        compare("velocity", physical("Velocities") / 1e5, expected["velocity"], velocity_tolerance)
        compare("mass", physical("Masses") / 1.98841e33 * h, expected["mass"])
        compare("id", particles["ParticleIDs"][expected["row"]], expected["id"])
        compare("count", len(particles["ParticleIDs"]), expected["count"])
        if "Maki" not in file["Maki"].attrs["Version"]:
            failures.append("no version in /Maki")


def swift_with_h5py(file):
    header, particles, h = file["Header"].attrs, file["PartType1"], expected["hubble"]
    factor = "Conversion factor to physical CGS (including cosmological corrections)"

    def physical(name):
        return particles[name][expected["row"]] * particles[name].attrs[factor][0]

    a = header["Scale-factor"][0]
    compare("Redshift", header["Redshift"], [expected["redshift"]])
    compare("BoxSize", header["BoxSize"] * h, [expected["box"]] * 3)
    compare("position", physical("Coordinates") / 3.0856776e24 / a * h, expected["position"])
    compare("velocity", physical("Velocities") / 1e5, expected["velocity"], velocity_tolerance)
    compare("mass", physical("Masses") / 1.98841e33 * h, expected["mass"])
    compare("id", particles["ParticleIDs"][expected["row"]], expected["id"])


def with_swiftsimio():
    snapshot = module.load(path)
    metadata, particles, h, row = snapshot.metadata, snapshot.dark_matter, expected["hubble"], expected["row"]
    compare("a", metadata.scale_factor, 1 / (1 + expected["redshift"]))
    compare("box", metadata.boxsize.to_comoving().to_value("Mpc") * h, [expected["box"]] * 3)
    compare("h", metadata.cosmology.h, h)
    compare("Omega0", metadata.cosmology.Om0, expected["omega0"])
    compare("OmegaLambda", metadata.cosmology.Ode0, expected["omega_lambda"])
    compare("count", metadata.n_dark_matter, expected["count"])
    compare("id", int(particles.particle_ids[row]), expected["id"])
    compare("position", particles.coordinates[row].to_comoving().to_value("Mpc") * h, expected["position"])
    compare("velocity", particles.velocities[row].to_physical().to_value("km/s"), expected["velocity"], velocity_tolerance)
    compare("mass", particles.masses[row].to_value("Msun") * h, expected["mass"])


def with_yt():
    module.set_log_level(50)
    data_set = module.load(path)
    compare("Omega0", data_set.omega_matter, expected["omega0"])
    compare("OmegaLambda", data_set.omega_lambda, expected["omega_lambda"])
    compare("h", data_set.hubble_constant, expected["hubble"])
    compare("z", data_set.current_redshift, expected["redshift"])
    compare("box", data_set.domain_width.to("Mpccm/h"), [expected["box"]] * 3)
    data = data_set.all_data()
    row = int(np.nonzero(np.asarray(data["PartType1", "ParticleIDs"]) == expected["id"])[0][0])
    compare("count", len(data["PartType1", "ParticleIDs"]), expected["count"])
    compare("position", data["PartType1", "particle_position"][row].to("Mpccm/h"), expected["position"])
    compare("velocity", data["PartType1", "particle_velocity"][row].to("km/s"), expected["velocity"], velocity_tolerance)
    compare("mass", data["PartType1", "particle_mass"][row].to("Msun/h"), expected["mass"])


def with_pynbody():
    snapshot = module.load(path)
    properties = snapshot.properties
    compare("Omega0", properties["omegaM0"], expected["omega0"])
    compare("OmegaLambda", properties["omegaL0"], expected["omega_lambda"])
    compare("h", properties["h"], expected["hubble"])
    compare("a", properties["a"], 1 / (1 + expected["redshift"]))
    box = properties["boxsize"].in_units("Mpc a h^-1", a=properties["a"], h=properties["h"])
    compare("box", box, expected["box"])
    row = int(np.nonzero(np.asarray(snapshot.dm["iord"]) == expected["id"])[0][0])
    compare("count", len(snapshot.dm), expected["count"])
    compare("position", snapshot.dm["pos"].in_units("Mpc a h^-1")[row], expected["position"])
    compare("velocity", snapshot.dm["vel"].in_units("km s^-1")[row], expected["velocity"], velocity_tolerance)
    compare("mass", snapshot.dm["mass"].in_units("Msol h^-1")[row], expected["mass"])


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    {"h5py": with_h5py, "yt": with_yt, "pynbody": with_pynbody, "swiftsimio": with_swiftsimio}[package]()
print("\n".join(failures) or f"{package} {module.__version__}: all agrees")
sys.exit(1 if failures else 0)
