"""A random history by seed: the same world as the state machine's, driven without hypothesis, to count how often a fault shows."""

from __future__ import annotations

import random

from tests.simulation.settle import settle
from tests.simulation.source import SOURCES
from tests.simulation.world import DAY, FAULTS, Model, SimDropper, SimWriter, World


def random_history(seed: int, model: Model, *, drops: int = 1, steps: int = 120) -> World:
    rng = random.Random(seed)
    world = World(rng.choice(SOURCES), model, fickle=rng.random() < 0.2)
    repairs = 1 if rng.random() < 0.3 else 0
    writers, drops_left = 3, drops if rng.random() < 0.5 else 0
    faults, fault_rate, pause_rate = 3, rng.choice((0.0, 0.05, 0.15)), rng.choice((0.02, 0.1, 0.25))
    sticky, current = rng.choice((0.3, 0.7, 0.9, 0.97)), None
    for _ in range(steps):
        if writers and (not world.processes or rng.random() < 0.06):
            writers -= 1
            name = f"W{world.readings + 1}"
            world.start(SimWriter(world, name, max_calls=rng.choice((1, 2, 3, 99)), rng=random.Random(rng.random())))
        if drops_left and rng.random() < 0.03:
            drops_left -= 1
            world.start(SimDropper(world))
        if repairs and rng.random() < 0.06:
            repairs -= 1
            world.operator_deletes_last()
        chance = rng.random()
        if chance < pause_rate:
            world.pass_time(rng.choice((1, 6, 6, 700, 4000, 8 * DAY)))
        elif chance < pause_rate + 0.25:
            for _ in range(rng.choice((1, 2, 9))):
                world.service.apply_one()
            world.service.move(rng, rng.choice((0, 1, 9)))
        elif world.network and rng.random() < 0.15:
            world.deliver(rng.randrange(len(world.network)))
        elif world.processes:
            if current not in world.processes or rng.random() > sticky:
                current = rng.choice(world.processes)
            fault = "none"
            if faults and rng.random() < fault_rate:
                faults -= 1
                fault = rng.choice(FAULTS[1:])
                writers += "crash" in fault
            world.step(current, fault)
    settle(world)
    return world


if __name__ == "__main__":
    import collections
    import sys
    import time

    count, model = int(sys.argv[1]), Model(**{name: True for name in sys.argv[2:]})
    bad: collections.Counter[str] = collections.Counter()
    first: dict[str, World] = {}
    stale, started = 0, time.perf_counter()
    for seed in range(count):
        world = random_history(seed, model)
        stale += bool(world.stale)
        for what in world.bad:
            kind = what[:45]
            bad[kind] += 1
            if kind not in first or len(first[kind].trace) > len(world.trace):
                first[kind] = world
    print(count, "histories", stale, "with a stale file", f"{time.perf_counter() - started:.1f} s", dict(bad))
    for kind, world in first.items():
        print("-----", kind, "\n  ", "\n   ".join(world.trace[-70:]))
