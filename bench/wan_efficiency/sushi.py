"""Measured and modelled times of SUSHI over 0.27 to 0.32 s of round trip (Groen et al. 2011, table 7, theta = 0.3), and
its model of what sites send (equations 11 and 12)."""

# N^(1/3), M^(1/3), processes, sites; measured: communication within sites, all of it, tree, whole step; modelled:
# communication within sites, all of it, tree, whole step. Seconds a step; * without the relay in Amsterdam.
TABLE_7 = [
    (256, 128, 60, "A", 0.207, 0.207, 11.32, 11.80, 0.04, 0.03, 10.79, 11.22),
    (256, 128, 60, "HA", 0.156, 1.085, 10.88, 12.23, 0.03, 1.06, 9.29, 10.74),
    (256, 128, 60, "EA", 0.177, 1.536, 10.91, 12.71, 0.03, 1.06, 9.39, 10.84),
    (256, 128, 60, "AT", 0.177, 3.741, 11.47, 15.48, 0.03, 4.23, 9.69, 14.31),
    (256, 128, 60, "HEA*", 0.143, 5.960, 10.95, 17.12, 0.03, 1.66, 8.86, 10.91),
    (512, 128, 120, "A", 1.045, 1.045, 69.57, 71.04, 0.06, 0.06, 58.98, 59.91),
    (512, 128, 120, "HA", 0.783, 4.585, 55.96, 61.62, 0.04, 3.14, 50.79, 54.91),
    (512, 128, 120, "HEA", 0.524, 4.778, 50.69, 56.31, 0.04, 4.19, 48.42, 53.64),
    (512, 128, 120, "HEAT*", 0.653, 19.26, 49.96, 70.10, 0.04, 9.42, 48.06, 58.52),
    (512, 256, 120, "A", 1.367, 1.367, 42.13, 46.04, 0.16, 0.16, 49.60, 52.46),
    (512, 256, 120, "HA", 1.363, 5.761, 41.00, 48.52, 0.15, 5.48, 42.71, 51.01),
    (512, 256, 120, "AT", 1.313, 10.98, 38.97, 51.67, 0.15, 8.66, 44.54, 56.02),
    (512, 256, 120, "HEA", 1.191, 13.51, 40.91, 55.96, 0.14, 7.66, 40.72, 51.22),
    (1024, 256, 240, "A", 3.402, 3.402, 265.5, 272.8, 0.20, 0.20, 271.0, 275.8),
    (1024, 256, 240, "HA", 3.919, 21.98, 217.9, 252.0, 0.18, 23.88, 233.4, 262.3),
    (1024, 256, 240, "HEA", 4.052, 31.28, 258.0, 294.7, 0.17, 26.05, 217.1, 248.4),
]


def round_trips(sites):
    """Equation 11: of a step, all of them waited for."""
    return 5 * sites + 3


def bytes_of_step(particles, mesh, sites, theta, sampled=1e-4):
    """Equation 12's numerator; particles and mesh are counts."""
    return 4 * sites * mesh + (48 / theta + 24) * particles ** (2 / 3) + 4 * particles * sampled


def mesh_bytes(mesh, sites):
    """Both interlaced meshes as 64-bit integers, the part of the other sites."""
    return 16 * mesh * (sites - 1) / sites


def print_table():
    print("\nSUSHI, table 7 (theta = 0.3; machines of unequal speed: E is not of the network alone)")
    print("    N      M  ranks  sites    comm    tree      PM    step  step without wait | model: comm    tree    step")
    for n, m, ranks, sites, _, comm, tree, step, _, model_comm, model_tree, model_step in TABLE_7:
        print(f"{n:4}^3 {m:4}^3 {ranks:6}  {sites:<6} {comm:6.2f} {tree:7.2f} {step - comm - tree:7.2f} {step:7.2f} "
              f"{(step - comm) / step:18.3f} | {model_comm:11.2f} {model_tree:7.2f} {model_step:7.2f}")
