"""Simulations that change their threads, and several GPUs; on the CPU the same with none."""
import threading

import numpy
import pytest

import maki

SPHERE = dict(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=256, truncation_radius=5., softening=0.05,
              reuse=1, max_step=0.001, end_time=0.03)


def has_second_gpu():
    if maki.backend != "cuda":
        return False
    try:
        maki.Simulation(**SPHERE, device=1)
    except maki.DeviceError:
        return False
    return True


def in_two_threads(one, other):
    threads = [threading.Thread(target=call, daemon=True) for call in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
        assert not thread.is_alive()


def test_two_simulations_whose_threads_swap_them():
    alone = [maki.Simulation(**SPHERE, seed=seed).evolve().positions for seed in (1, 2)]
    both, meet = [maki.Simulation(**SPHERE, seed=seed) for seed in (1, 2)], threading.Barrier(2)

    def steps(first):
        for n in range(30):
            meet.wait()
            both[(first + n) % 2].step()

    in_two_threads(lambda: steps(0), lambda: steps(1))
    for simulation, expected in zip(both, alone):
        numpy.testing.assert_allclose(simulation.evolve().positions, expected, atol=1e-5)


def test_products_of_a_run_on_another_gpu():
    if not has_second_gpu():
        pytest.skip("there is no second GPU")
    box = dict(particles_per_side=8, box={"size": "30 Mpc/h"}, end_redshift=40)
    first, second = (maki.Simulation(**box, device=device) for device in (0, 1))
    for simulation in (second, first, second):
        simulation.step()
        power = maki.power(simulation.snapshot(), mesh=16, folding=1)
        assert (power.power > 0).all()
    numpy.testing.assert_allclose(first.evolve().positions, second.evolve().positions, atol=1e-3)
