"""The interface by AMUSE's names."""
import numpy
import pytest

import maki
import maki.amuse


@pytest.fixture
def cluster():
    stars = maki.initial_conditions(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=400,
                                    truncation_radius=5., softening=0.05)
    gravity = maki.amuse.Maki(eps2=0.05 ** 2)
    gravity.new_particle(stars.masses, *stars.positions.T, *stars.velocities.T)
    return gravity


def test_kepler():
    gravity = maki.amuse.Maki(eps2=1e-8, eta=0.05)
    index = gravity.new_particle([1, 1e-6], [0, 1], [0, 0], [0, 0], [0, 0], [0, numpy.sqrt(0.5)], [0, 0])
    period = 2 * numpy.pi * (1 / 1.5) ** 1.5
    for quarter in (1, 2, 3, 4):
        gravity.evolve_model(quarter * period / 4)
        assert gravity.get_time() == quarter * period / 4
        if quarter == 2:
            assert gravity.get_position(index[1])[0] == pytest.approx(-1 / 3, abs=2e-3)
    numpy.testing.assert_allclose(gravity.get_position(index[1]), [1, 0, 0], atol=5e-3)


def test_energy_is_kept(cluster):
    def energy():
        return cluster.get_kinetic_energy() + cluster.get_potential_energy()

    before = energy()
    assert before == pytest.approx(-0.14, abs=0.03)
    for time in numpy.arange(1, 6) / 5:
        cluster.evolve_model(time)
    assert energy() == pytest.approx(before, rel=2e-3)


def test_particles_come_change_and_go(cluster):
    first = cluster.get_index_of_first_particle()
    assert (first, cluster.get_index_of_next_particle(first)) == (0, 1) and cluster.get_number_of_particles() == 400
    cluster.delete_particle([3, 5])
    cluster.evolve_model(0.1)
    with pytest.raises(maki.Error, match="no particle"):
        cluster.get_state(5)
    new = cluster.new_particle(0.01, 1, 2, 3, 0, 0, 0.1, radius=0.5)
    assert new == 400 and cluster.get_number_of_particles() == 399
    assert cluster.get_state(new) == (0.01, 1, 2, 3, 0, 0, 0.1, 0.5)
    cluster.set_state([7, 8], [0.1, 0.2], [1, 1], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0])
    cluster.set_velocity(9, 1, 2, 3)
    assert cluster.get_mass(8) == 0.2 and cluster.get_velocity(9) == (1, 2, 3)
    cluster.evolve_model(0.2)
    assert cluster.get_position(new) != (1, 2, 3) and cluster.get_time() == 0.2
    assert cluster.get_radius(new) == 0.5
    with pytest.raises(maki.Error, match="forward only"):
        cluster.evolve_model(0.1)
    with pytest.raises(maki.Error, match="last one"):
        cluster.get_index_of_next_particle(new)


def test_a_run_goes_on_where_nothing_changes(cluster):
    cluster.evolve_model(0.1)
    simulation = cluster._simulation
    cluster.evolve_model(0.2)
    assert cluster._simulation is simulation
    cluster.set_mass(0, 0.1)
    cluster.evolve_model(0.3)
    assert cluster._simulation is not simulation


def test_an_interrupted_call_leaves_the_particles_as_they_were(cluster, monkeypatch):
    def interrupted(simulation, **_):
        simulation.finish()
        raise KeyboardInterrupt

    before = cluster.get_position(0)
    with monkeypatch.context() as patch:
        patch.setattr(maki.Simulation, "evolve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cluster.evolve_model(0.1)
    assert cluster.get_position(0) == before and cluster.get_time() == 0
    cluster.evolve_model(0.1)
    assert cluster.get_position(0) != before and cluster.get_time() == 0.1


def test_small_kicks_add_up():
    gravity = maki.amuse.Maki(eps2=1e-4)
    gravity.new_particle([1e-9] * 2, [0, 100], [0, 0], [0, 0], [1, 0], [0.1, 0], [0, 0])
    for kick in range(1000):
        vx, vy, vz = gravity.get_velocity(0)
        gravity.set_velocity(0, vx + 2e-8, vy, vz)
        gravity.evolve_model((kick + 1) / 1000)
    numpy.testing.assert_allclose(gravity.get_velocity(0), (1 + 2e-5, 0.1, 0), atol=1e-9)


def test_the_field_is_that_of_the_particles(cluster):
    place = numpy.stack(cluster.get_position(cluster.get_indices()), axis=-1)
    mass = cluster.get_mass(cluster.get_indices())
    d = place - [1., 2, 2]
    r = numpy.linalg.norm(d, axis=1)
    expected = (mass[:, None] * d / r[:, None] ** 3).sum(axis=0)
    numpy.testing.assert_allclose(cluster.get_gravity_at_point(0, 1., 2., 2.), expected, rtol=5e-3)
    phi = cluster.get_potential_at_point(0, [1., 1.], [2., 2.], [2., 2.])
    numpy.testing.assert_allclose(phi, -(mass / r).sum(), rtol=5e-3)
    acceleration = numpy.stack(cluster.get_acceleration(cluster.get_indices()), axis=-1)
    assert numpy.abs((mass[:, None] * acceleration).sum(axis=0)).max() < 1e-3
    assert cluster.get_total_mass() == pytest.approx(mass.sum())
    numpy.testing.assert_allclose(cluster.get_center_of_mass_position(), numpy.average(place, axis=0, weights=mass))


def test_units_that_are_given():
    kpc, msun = 3.085677581491367e21, 1.988409870698051e33
    gravity = maki.amuse.Maki(eps2=1e-6, units=maki.Units(kpc, 1e10 * msun, 1e5, False), eta=0.05)
    speed = numpy.sqrt(43007.1 / 10)  # km/s, about 1e10 solar masses at 10 kpc
    gravity.new_particle([1, 1e-9], [0, 10], [0, 0], [0, 0], [0, 0], [0, speed], [0, 0])
    quarter = 2 * numpy.pi * 10 / speed / 4
    gravity.evolve_model(quarter)
    numpy.testing.assert_allclose(gravity.get_position(1), [0, 10, 0], atol=0.05)


@pytest.mark.parametrize("keys, said", [(dict(end_time=0.1), "end_time is no key .* evolve_model"),
                                        ({"time.end_time": 0.1}, "evolve_model"), (dict(time={"end_time": 0.1}), "evolve_model"),
                                        (dict(softening=0.1), "softening is no key .* eps2")])
def test_keys_that_calls_decide_are_refused(keys, said):
    with pytest.raises(maki.Error, match=said):
        maki.amuse.Maki(eps2=1e-4, **keys)


def test_a_file_of_settings_does_not_end_the_model(tmp_path):
    (tmp_path / "run.toml").write_text("[time]\nend_time = 0.05\n")
    gravity = maki.amuse.Maki(eps2=1e-4, config=tmp_path / "run.toml")
    gravity.new_particle([1, 1e-6], [0, 1], [0, 0], [0, 0], [0, 0], [0, 1], [0, 0])
    gravity.evolve_model(0.2)
    assert gravity.get_position(1)[1] == pytest.approx(0.2, rel=0.02)


def test_a_bad_value_changes_nothing(cluster):
    before = cluster.get_state(0)
    cluster.evolve_model(0)
    for bad in ([1, 2], "far"):
        with pytest.raises(ValueError):
            cluster.set_state(0, 100., bad, 0, 0, 0, 0, 0)
    assert cluster.get_state(0) == before
    cluster.set_mass(0, [0.5])
    assert cluster.get_mass(0) == 0.5
    for bad in (numpy.inf, numpy.nan):
        with pytest.raises(maki.Error, match="cannot go to t"):
            cluster.evolve_model(bad)
    assert cluster.get_time() == 0


def test_the_time_at_which_a_model_begins():
    gravity = maki.amuse.Maki(eps2=1e-4)
    gravity.set_begin_time(5)
    gravity.new_particle(1, 0, 0, 0, 1, 0, 0)
    assert gravity.get_time() == gravity.get_begin_time() == 5
    with pytest.raises(maki.Error, match="at t = 5 .* forward only"):
        gravity.evolve_model(3)
    gravity.evolve_model(6)
    numpy.testing.assert_allclose(gravity.get_position(0), (1, 0, 0), atol=1e-6)
    gravity.set_begin_time(7)
    assert gravity.get_time() == 6
    with pytest.raises(maki.Error, match="cannot begin at t = nan"):
        gravity.set_begin_time(numpy.nan)


def test_settings_of_outputs():
    gravity = maki.amuse.Maki(eps2=1e-4, output={"energy_interval": 1})
    gravity.new_particle([1, 1], [0, 1], 0, 0, 0, 0, 0)
    gravity.evolve_model(0.01)
    assert gravity.get_position(1)[0] < 1


def test_no_particles_are_asked_for():
    gravity = maki.amuse.Maki(eps2=1e-4)
    for index in (gravity.new_particle([], [], [], [], [], [], []), []):
        assert len(gravity.get_mass(index)) == 0 and [len(values) for values in gravity.get_state(index)] == [0] * 8
    gravity.delete_particle([])
    with pytest.raises(maki.Error, match="no particle"):
        gravity.get_mass(0)
    gravity.new_particle(1, 0, 0, 0, 0, 0, 0)
    assert [len(values) for values in gravity.get_gravity_at_point(0, [], [], [])] == [0] * 3


def test_nothing_is_no_model():
    with pytest.raises(maki.Error, match="no particles"):
        maki.amuse.Maki().evolve_model(1)
    with pytest.raises(maki.Error, match="no particles"):
        maki.amuse.Maki().get_center_of_mass_position()


def test_the_softening_is_above_zero():
    with pytest.raises(maki.Error, match="eps2 = 0 is no squared softening"):
        maki.amuse.Maki(eps2=0)
    gravity = maki.amuse.Maki(eps2=1e-4)
    with pytest.raises(maki.Error, match="eps2"):
        gravity.set_eps2(-1)


def test_a_star_that_has_flown_far_does_not_end_the_model():
    rng = numpy.random.default_rng(5)
    gravity = maki.amuse.Maki(eps2=1e-4)
    index = gravity.new_particle(numpy.full(50, 0.02), *rng.normal(size=(3, 50)), *(0.3 * rng.normal(size=(3, 50))))
    gravity.set_velocity(index[3], 1000, 0, 0)
    gravity.evolve_model(100)
    assert gravity.get_potential_energy() < 0
    gravity.get_gravity_at_point(0, 0, 0, 0)
    before = gravity.get_position(index[3])[0]
    gravity.set_velocity(index[4], 0, 0, 0)
    gravity.evolve_model(101)
    numpy.testing.assert_allclose(gravity.get_position(index[3])[0] - before, 1000, rtol=1e-3)
