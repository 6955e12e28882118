"""Particle sets as arrays, in files and with units."""
import concurrent.futures
import copy
import pickle

import h5py
import numpy
import pytest

import maki


@pytest.fixture(scope="module")
def box():
    return maki.initial_conditions(particles_per_side=16, box={"size": "30 Mpc/h"}, hubble_param=0.7)


@pytest.mark.parametrize("how", [dict(), dict(compression=3), dict(files=3), dict(format="gadget1"),
                                 dict(coordinates="fixed32", fields=["Coordinates", "Velocities", "ParticleIDs"]),
                                 dict(format="gadget2", big_endian=True), dict(format="gadget2", coordinates="float")])
def test_what_is_written_is_read(box, tmp_path, how):
    names = maki.write(tmp_path / "set", box, **how) if "format" in how else maki.write(tmp_path / "set.hdf5", box, **how)
    assert len(names) == how.get("files", 1)
    again = maki.read(names[0])
    digits = 1e-6 if how.get("coordinates", "double") == "double" else 1e-5
    assert numpy.array_equal(again.ids, box.ids)
    numpy.testing.assert_allclose(again.positions, box.positions, rtol=0, atol=30 * digits)
    numpy.testing.assert_allclose(again.velocities, box.velocities, rtol=1e-5, atol=1e-4)
    numpy.testing.assert_allclose(again.masses, box.masses, rtol=1e-6)
    assert again.header.box_size == pytest.approx(30)
    assert again.header.redshift == pytest.approx(49)
    assert again.header.hubble == pytest.approx(0.7)
    assert again.counts == [0, 4096, 0, 0, 0, 0]


def test_another_library_reads_it(box, tmp_path):
    maki.write(tmp_path / "s.hdf5", box, extra={"Tag": numpy.arange(len(box))}, configuration=maki.Configuration(seed=3))
    with h5py.File(tmp_path / "s.hdf5") as file:
        numpy.testing.assert_array_equal(file["PartType1/Coordinates"][:], box.positions)
        numpy.testing.assert_allclose(file["PartType1/Velocities"][:], box.velocities / numpy.sqrt(0.02), rtol=1e-5)
        assert file["PartType1/Tag"][7] == 7
    assert maki.read_dataset(tmp_path / "s.hdf5", "Tag")[100] == 100
    assert "seed = 3" in maki.read_configuration(tmp_path / "s.hdf5")
    assert any("4096" in line for line in maki.describe(tmp_path / "s.hdf5"))


def test_more_numbers_that_would_lose_something_are_refused(box, tmp_path):
    for wrong, said in ((numpy.full(len(box), 2**53 + 1, "u8"), r"of 2\^53 or more"), (numpy.ones(len(box)) * 1j, "real numbers")):
        with pytest.raises(maki.Error, match=said):
            maki.write(tmp_path / "s.hdf5", box, extra={"Tag": wrong})
    assert not (tmp_path / "s.hdf5").exists()


def test_arrays_are_the_memory_of_the_set(box):
    own = box.copy()
    own.positions[3] = [1, 2, 3]
    assert own.positions[3].tolist() == [1, 2, 3]
    positions = own.positions
    own.positions = box.positions
    assert numpy.array_equal(positions, box.positions)
    with pytest.raises(maki.Error, match="4095 rows"):
        own.positions = box.positions[1:]
    del own
    assert numpy.array_equal(positions, box.positions)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_sets_are_copied_and_pickled(box, again):
    own = box.copy()
    own.header.redshift, own.header.units, own.file = 7, maki.Units(1, 2, 3, False), "a.hdf5"
    other = again(own)
    for name in ("positions", "velocities", "masses", "ids"):
        numpy.testing.assert_array_equal(getattr(other, name), getattr(own, name))
    for name in ("comoving", "time", "redshift", "box_size", "omega0", "omega_lambda", "omega_baryon", "hubble",
                 "gravitational_constant"):
        assert getattr(other.header, name) == getattr(own.header, name) == getattr(again(own.header), name)
    assert (other.header.units.velocity_cgs, other.header.units.with_h, other.file) == (3, False, "a.hdf5")
    own.positions += 1
    assert (other.positions == box.positions).all()


def test_views_show_the_sorted_set(box):
    box = box.copy()
    box.ids[:] = box.ids[::-1].copy()
    positions, first, last = box.positions, box.positions[0].copy(), box.positions[-1].copy()
    box.sort()
    assert (positions == box.positions).all() and (positions[0] == last).all() and (positions[-1] == first).all()


def test_redshift_and_scale_factor_go_together():
    header = maki.Header()
    header.time = 0.02
    assert header.redshift == pytest.approx(49)
    header.redshift = 9
    assert header.time == pytest.approx(0.1)


def test_a_set_of_arrays():
    rows = numpy.random.default_rng(1).normal(size=(3, 10)).astype("float32")
    own = maki.snapshot(rows.T, numpy.zeros((10, 3)), 2, ids=numpy.arange(10, 20))
    assert not own.header.comoving and own.header.units.pure and own.header.newton() == 1
    assert own.masses.dtype == numpy.float32 and own.masses.tolist() == [2] * 10
    numpy.testing.assert_array_equal(own.positions, rows.T)
    with pytest.raises(maki.Error, match="shape"):
        maki.snapshot(rows, rows, 1)
    with pytest.raises(maki.Error, match="velocities has 9 rows"):
        maki.snapshot(rows.T, rows.T[1:], 1)


def test_units_have_names_and_numbers(box):
    units = box.header.units
    assert (units.length, units.mass, units.velocity) == ("Mpc/h", "1e10 Msun/h", "km/s")
    assert units.gravitational_constant == pytest.approx(43.0, rel=1e-3)
    unyt = pytest.importorskip("unyt")
    assert maki.quantity(box, "positions").max() < unyt.unyt_quantity(30 / 0.7, "Mpc")
    mass = maki.quantity(box, "masses").sum()
    assert float(mass.to("Msun")) == pytest.approx(box.masses.sum(dtype=float) * 1e10 / 0.7, rel=1e-4)


def test_messages_are_those_of_the_program(box, tmp_path):
    with pytest.raises(maki.Error, match="cannot read '.*none.hdf5'.*check the name"):
        maki.read(tmp_path / "none.hdf5")
    maki.write(tmp_path / "s.hdf5", box)
    with pytest.raises(maki.Error, match="exists"):
        maki.write(tmp_path / "s.hdf5", box)
    assert issubclass(maki.Error, RuntimeError) and issubclass(maki.DeviceError, maki.Error)
    with pytest.raises(maki.Error, match="format"):
        maki.write(tmp_path / "t.hdf5", box, format="csv")


def test_threads_read_and_write_side_by_side(box, tmp_path):
    def pass_on(k):
        for i in range(5):
            maki.write(tmp_path / f"{k}.hdf5", box, compression=k % 3, overwrite=True)
            assert numpy.array_equal(maki.read(tmp_path / f"{k}.hdf5").ids, box.ids)
            assert maki.describe(tmp_path / f"{k}.hdf5") and maki.version_text()
        return k

    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        assert list(threads.map(pass_on, range(6))) == list(range(6))


def test_what_is_no_set_is_not_written(box, tmp_path):
    shifted = box.copy()
    shifted.positions = box.positions + 5
    maki.write(tmp_path / "shifted.hdf5", shifted)
    numpy.testing.assert_allclose(maki.read(tmp_path / "shifted.hdf5").positions, (box.positions + 5) % 30, rtol=0, atol=1e-9)
    shifted.positions[3, 1] = numpy.nan
    with pytest.raises(maki.Error, match="particle 3 .* not a number"):
        maki.write(tmp_path / "none.hdf5", shifted)
    assert not (tmp_path / "none.hdf5").exists()


@pytest.mark.parametrize("name, value, said", [("time", numpy.inf, "needs a scale factor .header.time is inf"),
                                               ("redshift", -3, "needs a scale factor"), ("box_size", numpy.nan, "needs a box"),
                                               ("gravitational_constant", -1, "header.gravitational_constant is -1"),
                                               ("units", maki.Units(-1, 1, 1), "header.units has a unit of -1")])
def test_headers_that_mean_nothing_are_refused(box, tmp_path, name, value, said):
    own = box.copy()
    setattr(own.header, name, value)
    for call in (maki.power, lambda one: maki.write(tmp_path / "none.hdf5", one)):
        with pytest.raises(maki.Error, match=said):
            call(own)
    assert not (tmp_path / "none.hdf5").exists()


@pytest.mark.parametrize("wrong, said", [(dict(id_bits=16), "32, 64, or 0"), (dict(compression=10), "no compression 10"),
                                         (dict(compression=-1), "no compression -1"),
                                         (dict(big_endian=True), "leave out big-endian"),
                                         (dict(format="gadget2", compression=5), "binary files cannot be compressed")])
def test_ways_to_write_that_there_are_not_are_refused(box, tmp_path, wrong, said):
    with pytest.raises(maki.Error, match=said):
        maki.write(tmp_path / "set", box, **wrong)


@pytest.mark.parametrize("wrong, said", [(dict(masses=numpy.ones(7)), r"masses have the shape \(7,\)"),
                                         (dict(masses=numpy.ones((10, 1))), "one number for all"),
                                         (dict(positions=numpy.ones((10, 3)) * 1j), "complex128: give real numbers"),
                                         (dict(velocities=numpy.full((10, 3), "1")), "velocities are of the type"),
                                         (dict(velocities=numpy.ones((10, 2))), r"velocities have the shape \(10, 2\)"),
                                         (dict(ids=numpy.ones((10, 1))), r"ids have the shape \(10, 1\)"),
                                         (dict(ids=numpy.arange(10) + 0.5), "whole numbers"),
                                         (dict(ids=-numpy.arange(10)), "whole numbers"),
                                         (dict(ids=[2**70] * 10), "whole numbers"),
                                         (dict(ids=[2**63 + 1] + [1] * 9), "leave out integers"),
                                         (dict(ids=numpy.full(10, numpy.nan)), "whole numbers"),
                                         (dict(velocities=[[1, 2, 3]] * 9 + [[1, 2]]), "velocities are no array of numbers"),
                                         (dict(velocities=numpy.ma.masked_less(numpy.ones((10, 3)), 2)), "masked")])
def test_arrays_that_would_lose_something_are_refused(wrong, said):
    right = dict(positions=numpy.ones((10, 3)), velocities=numpy.ones((10, 3)), masses=1, ids=numpy.arange(10.))
    assert maki.snapshot(**right).ids.tolist() == list(range(10))
    with pytest.raises(maki.Error, match=said):
        maki.snapshot(**dict(right, **wrong))
    own = maki.snapshot(**right)
    for name, values in wrong.items():
        with pytest.raises(maki.Error, match="one .*for each particle" if name == "masses" else said):
            setattr(own, name, values)
    assert own.ids.tolist() == list(range(10))
    with pytest.raises(TypeError, match="maki.Snapshot"):
        maki.forces(right["positions"], softening=0.1)
