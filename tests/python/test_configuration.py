"""Configurations from files and keywords."""
import numpy
import pytest

import maki


def test_keys_in_all_spellings():
    one = maki.Configuration(theta=0.6, box={"size": "50 Mpc/h"}, **{"initial.seed": 7, "output.redshifts": [3, 1]})
    text = one.toml()
    for line in ("theta = 0.6", 'size = "50 Mpc/h"', "seed = 7", "redshifts = [3.0, 1.0]"):
        assert line in text
    assert "seed = 8" in maki.Configuration(one, seed=8).toml()


def test_values_of_numpy_and_none():
    text = maki.Configuration(seed=numpy.int64(5), theta=None, redshifts=numpy.array([2.0])).toml()
    assert "seed = 5" in text and 'theta = "auto"' in text and "redshifts = [2.0]" in text


def test_keywords_override_a_file(tmp_path):
    (tmp_path / "run.toml").write_text("[initial]\nseed = 3\nredshift = 30\n")
    own = maki.Configuration(tmp_path / "run.toml", seed=4)
    assert "seed = 4" in own.toml() and "redshift = 30" in own.toml()


def test_errors_name_the_key():
    with pytest.raises(maki.Error, match="keywords: there is no key 'thetta': did you mean 'gravity.theta'"):
        maki.Configuration(thetta=1)
    with pytest.raises(maki.Error, match="keywords: gravity.theta"):
        maki.Configuration(theta=-1)
    with pytest.raises(maki.Error, match="no_such_file.toml"):
        maki.Configuration("no_such_file.toml")


def test_initial_conditions_are_those_of_the_seed():
    one, same, other = (maki.initial_conditions(particles_per_side=8, box={"size": 20}, seed=seed) for seed in (1, 1, 2))
    assert numpy.array_equal(one.positions, same.positions) and numpy.array_equal(one.velocities, same.velocities)
    assert not numpy.array_equal(one.positions, other.positions)
    assert one.header.units.length == "Mpc/h" and one.header.box_size == 20 and len(one) == 512
