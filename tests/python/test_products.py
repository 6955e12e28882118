"""Groups, power spectra and pictures: numbers as arrays, and the files of the program."""
import h5py
import numpy
import pytest

import maki


@pytest.fixture(scope="module")
def box():
    """Clumps of particles in a box, and others anywhere."""
    random = numpy.random.default_rng(5)
    clumps = [centre + 0.05 * random.normal(size=(count, 3)) for centre, count in
              (([5., 5, 5], 400), ([0., 20, 10], 200), ([15, 15, 29.9], 60))]
    header = maki.Header()
    header.box_size, header.omega0, header.omega_lambda, header.hubble = 30., 0.3, 0.7, 0.7
    positions = numpy.concatenate([*clumps, random.uniform(0, 30, size=(3436, 3))]) % 30
    mass = 0.3 * 27.7536627 * 30 ** 3 / 4096
    return maki.snapshot(positions, numpy.zeros_like(positions), mass, header=header)


def test_groups(box, tmp_path):
    groups = maki.groups(box)
    assert len(groups) == 3
    assert numpy.all(numpy.abs(groups.length - [400, 200, 60]) < 10)
    numpy.testing.assert_allclose(groups.mass, groups.length * float(box.masses[0]), rtol=1e-5)
    away = (groups.position - [[5, 5, 5], [0, 20, 10], [15, 15, 29.9]] + 15) % 30 - 15
    assert numpy.abs(away).max() < 0.1
    assert groups.sphere_mass["Crit200"].shape == (3,) and (groups.sphere_radius["Mean200"] > 0).all()
    first = groups.member_ids[:groups.length[0]]
    assert set(range(1, 401)) <= set(first.tolist())
    maki.write_groups(tmp_path / "groups.hdf5", groups, spectrum=maki.Configuration())
    with h5py.File(tmp_path / "groups.hdf5") as file:
        numpy.testing.assert_array_equal(file["Group/GroupLen"][:], groups.length)
    assert len(maki.groups(box, minimum=100)) == 2


def test_expected_mass_function(box):
    masses = numpy.logspace(2, 5, 4)
    expected = maki.expected_mass_function(maki.Configuration(), box.header, masses)
    assert (numpy.diff(expected) < 0).all() and (expected > 0).all()


def test_power_of_a_wave():
    n, k = 32, 2 * numpy.pi / 50
    q = numpy.stack(numpy.meshgrid(*[(numpy.arange(n) + 0.5) * 50 / n] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    amplitude = 0.02
    q[:, 0] -= amplitude / k * numpy.sin(k * q[:, 0])
    header = maki.Header()
    header.box_size, header.omega0, header.omega_lambda, header.hubble = 50., 0.3, 0.7, 0.7
    wave = maki.snapshot(q % 50, 0 * q, 1., header=header)
    power = maki.power(wave, mesh=32)
    assert k < power.k[0] < 1.5 * k and power.modes[0] == 18  # 6 of k, 12 of sqrt(2) k
    assert power.power[0] * 18 / 2 == pytest.approx(50 ** 3 * amplitude ** 2 / 4, rel=0.02)
    assert power.shot_noise == pytest.approx(50 ** 3 / n ** 3)


def test_power_file(box, tmp_path):
    power = maki.write_power(tmp_path / "p.txt", box)
    columns = numpy.loadtxt(tmp_path / "p.txt")
    numpy.testing.assert_allclose(columns[:, 0], power.k, rtol=1e-5)
    assert power.mesh == 16 and list(power.folding[[0, -1]]) == [1, 2] and power.length_unit == "Mpc/h"


def test_picture(box, tmp_path):
    picture = maki.image(box, pixels=60)
    assert picture.shape == (60, 60) and picture.mean() == pytest.approx(1, rel=1e-3)
    row, column = numpy.unravel_index(picture.argmax(), picture.shape)
    assert abs(column - 10) <= 1 and abs(row - 10) <= 1
    zoom = maki.image(box, pixels=60, width=15.)  # in units of the same mean
    assert zoom.mean() == pytest.approx(picture[15:45, 15:45].mean(), rel=0.05) and zoom.mean() < 0.9
    along_x = maki.image(box, pixels=60, axis="x")  # y along rows, z upwards
    assert along_x[20, 40] > 3 and along_x[20, 40] > 3 * along_x[40, 20]
    maki.write_image(tmp_path / "i.png", box, pixels=64)
    assert (tmp_path / "i.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(maki.Error, match="axis is 'w'"):
        maki.image(box, axis="w")
    with pytest.raises(maki.Error, match="4 pixels"):
        maki.image(box, pixels=4)
    for wrong in (dict(width=31.), dict(depth=31.)):
        with pytest.raises(maki.Error, match="more than the box"):
            maki.image(box, pixels=60, **wrong)
    with pytest.raises(maki.Error, match="inf wide"):
        maki.image(box, pixels=60, width=numpy.inf)


def test_picture_of_an_isolated_set():
    sphere = maki.snapshot(numpy.random.default_rng(6).normal(size=(2000, 3)), numpy.zeros((2000, 3)), 1.)
    picture = maki.image(sphere, pixels=32)
    assert picture[12:20, 12:20].mean() > 3 * picture.mean()
    with pytest.raises(maki.Error, match="needs a periodic box"):
        maki.power(sphere)
