"""Forces at particles and at points, against sums in numpy and the exact ones of Maki."""
import numpy
import pytest

import maki

SOFTENING = 0.01


@pytest.fixture(scope="module")
def sphere():
    return maki.initial_conditions(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=3000,
                                   truncation_radius=5., softening=SOFTENING)


@pytest.fixture(scope="module")
def box():
    return maki.initial_conditions(particles_per_side=16, box={"size": "30 Mpc/h"}, redshift=4)


def plummer_sum(sphere, points):
    d = sphere.positions[None] - points[:, None]
    s2 = (d ** 2).sum(axis=-1) + SOFTENING ** 2
    mass = sphere.masses.astype(float)
    return (mass[:, None] * d / s2[..., None] ** 1.5).sum(axis=1), -(mass / numpy.sqrt(s2)).sum(axis=1)


def relative(a, b):
    return numpy.linalg.norm(a - b, axis=1) / numpy.linalg.norm(b, axis=1)


def test_points_in_an_isolated_set(sphere):
    points = numpy.random.default_rng(2).normal(size=(400, 3)) * 2
    keys = dict(softening=SOFTENING, softening_kind="plummer")
    exact, phi = plummer_sum(sphere, points)
    acceleration, potential = maki.forces(sphere, points, method="direct", **keys)
    assert relative(acceleration, exact).max() < 1e-7  # the softening is a float
    numpy.testing.assert_allclose(potential, phi, rtol=1e-7)
    acceleration, potential = maki.forces(sphere, points, **keys)
    error = relative(acceleration, exact)
    assert numpy.median(error) < 3e-4 and error.max() < 5e-3
    numpy.testing.assert_allclose(potential, phi, rtol=1e-3)


def test_points_far_from_an_isolated_set(sphere):
    total = sphere.masses.sum(dtype=float)
    for far, methods in [(2e4, ("run", "direct")), (1e12, ("direct",))]:
        for method in methods:
            acceleration, potential = maki.forces(sphere, [[far, 0, 0]], method=method, softening=SOFTENING)
            assert potential[0] == pytest.approx(-total / far, rel=1e-3)
            assert acceleration[0, 0] == pytest.approx(-total / far ** 2, rel=1e-3)
    near = [[1., 0, 0], [1e12, 0, 0]]
    exact = maki.forces(sphere, near[:1], method="direct", softening=SOFTENING)[0]
    numpy.testing.assert_array_equal(maki.forces(sphere, near, method="direct", softening=SOFTENING)[0][0], exact[0])
    with pytest.raises(maki.Error, match="point is too far .* give points not farther than 2.*'direct'"):
        maki.forces(sphere, [[1e6, 0, 0]], softening=SOFTENING)


def test_settings_of_a_run_with_outputs_serve(box, tmp_path):
    (tmp_path / "run.toml").write_text('[gravity]\nsoftening = "20 kpc/h"\n[lightcone]\nobservers = [0, 0, 0]\nedges = [0.1, 3]\n')
    with_cones, _ = maki.forces(box, config=tmp_path / "run.toml")
    numpy.testing.assert_array_equal(with_cones, maki.forces(box, softening="20 kpc/h")[0])


def test_points_in_a_box(box):
    points = numpy.random.default_rng(3).uniform(-30, 60, size=(200, 3))
    exact, phi = maki.forces(box, points, method="ewald")
    acceleration, potential = maki.forces(box, points)
    rms = numpy.sqrt((exact ** 2).sum(axis=1).mean())
    error = numpy.linalg.norm(acceleration - exact, axis=1) / rms
    assert numpy.sqrt((error ** 2).mean()) < 1e-3
    assert numpy.abs(potential - phi).max() < 2e-3 * phi.std()
    again, _ = maki.forces(box, points % 30)
    assert numpy.abs(again - acceleration).max() < 1e-3 * rms


def test_wrong_methods_are_refused(sphere, box):
    with pytest.raises(maki.Error, match="periodic box"):
        maki.forces(box, method="direct")
    with pytest.raises(maki.Error, match="isolated"):
        maki.forces(sphere, method="ewald", softening=SOFTENING)
    with pytest.raises(maki.Error, match="method is 'tree'"):
        maki.forces(sphere, method="tree", softening=SOFTENING)
    with pytest.raises(maki.Error, match="not a finite number"):
        maki.forces(sphere, [[numpy.nan, 0, 0]], softening=SOFTENING)
    with pytest.raises(maki.Error, match="softening"):
        maki.forces(sphere)


def test_bad_particles_are_found(sphere):
    bad = sphere.copy()
    bad.masses[7] = -1
    with pytest.raises(maki.Error, match="the given particles"):
        maki.forces(bad, softening=SOFTENING)


def test_a_box_in_units_of_its_own():
    header = maki.Header()
    header.box_size, header.gravitational_constant, header.omega0, header.hubble = 1., 1., 1., 1.
    two = maki.snapshot([[.5, .5, .5], [.9, .1, .2]], numpy.zeros((2, 3)), [1., 1e-9], header=header)
    acceleration, potential = maki.forces(two, [[.52, .5, .5], [.5, .5, .48]], method="ewald", softening=1e-4)
    numpy.testing.assert_allclose(acceleration, [[-2500, 0, 0], [0, 0, 2500]], atol=0.2)  # and 4 pi / 3 of the mean density
    many = maki.snapshot(numpy.random.default_rng(7).uniform(size=(1000, 3)), numpy.zeros((1000, 3)), 1e-3, header=header)
    points = numpy.random.default_rng(8).uniform(size=(50, 3))
    exact, _ = maki.forces(many, points, method="ewald")
    assert numpy.median(relative(maki.forces(many, points)[0], exact)) < 1e-3
