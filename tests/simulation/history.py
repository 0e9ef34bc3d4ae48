"""Random histories by seed: the worlds of the state machines without hypothesis, which is faster and easily split.

``python -m tests.simulation.history writers 1000 [RULE...]`` counts what goes wrong without the named rules, and prints
the shortest history of each kind.
"""

from __future__ import annotations

import collections
import random
import sys
import time

from tests.simulation.mirrors import MirrorModel, MirrorWorld, SimMirror, settle_mirrors
from tests.simulation.settle import settle
from tests.simulation.source import SOURCES
from tests.simulation.world import DAY, FAULTS, FORMATS, Model, Process, SimDropper, SimReplacer, SimWriter, World


def random_history(seed: int, model: Model, *, drops: int = 1, steps: int = 120, text: bool = False) -> World:
    """Writers, a drop, an operator, the service and a clock."""
    rng = random.Random(seed)
    world = World(rng.choice(SOURCES), model, fickle=rng.random() < 0.2, format=FORMATS[text])
    repairs = 1 if rng.random() < 0.3 else 0
    writers, drops_left, faults = 3, drops if rng.random() < 0.5 else 0, 3
    fault_rate, pause_rate = rng.choice((0.0, 0.05, 0.15)), rng.choice((0.02, 0.1, 0.25))
    sticky = rng.choice((0.3, 0.7, 0.9, 0.97))
    current: Process | None = None
    for _ in range(steps):
        if writers and (not world.processes or rng.random() < 0.06):
            writers -= 1
            name = f"W{world.readings + 1}"
            world.start(SimWriter(world, name, max_calls=rng.choice((1, 2, 3, 99)), rng=random.Random(rng.random())))
        if drops_left and rng.random() < 0.03:
            drops_left -= 1
            world.start(rng.choice((SimDropper, SimReplacer))(world))
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
            if current is None or current not in world.processes or rng.random() > sticky:
                current = rng.choice(world.processes)
            fault = "none"
            if faults and rng.random() < fault_rate:
                faults -= 1
                fault = rng.choice(FAULTS[1:])
                writers += "crash" in fault
            world.step(current, fault)
    settle(world)
    return world


def random_mirror_history(seed: int, model: MirrorModel, *, steps: int = 120, text: bool = False) -> MirrorWorld:
    """Mirrors that are paused and killed at any request, with writers and drops at work."""

    rng = random.Random(seed)
    world = MirrorWorld(rng.choice(SOURCES), model, FORMATS[text])
    writers, drops, crashes = 4, rng.choice((0, 1, 2)), 3
    sticky = rng.choice((0.5, 0.8, 0.95))
    current: Process | None = None
    adversarial = rng.random() < 0.3
    for _ in range(steps):
        chance = rng.random()
        if writers and chance < 0.06:
            writers -= 1
            calls = rng.choice((1, 2, 3, 99))
            process = world.start(SimWriter(world, f"W{world.readings + 1}", max_calls=calls, rng=random.Random(seed)))
            if not adversarial:
                world.run_to_end(process)
        elif drops and chance < 0.09:
            drops -= 1
            process = world.start(rng.choice((SimDropper, SimReplacer))(world))
            if rng.random() < 0.7:
                world.run_to_end(process)
        elif chance < 0.12:
            world.pass_time(rng.choice((1, 6, 4000, 8 * DAY)))
        elif chance < 0.25 and sum(isinstance(p.what, SimMirror) for p in world.processes) < 3:
            world.start_mirror(rng.choice((1, 2, 3)))
        elif world.network and chance < 0.3:
            world.deliver(rng.randrange(len(world.network)))
        elif world.processes:
            if current is None or current not in world.processes or rng.random() > sticky:
                current = rng.choice(world.processes)
            fault = "none"
            if crashes and rng.random() < 0.04:
                crashes -= 1
                fault = (
                    rng.choice(("crash before", "crash after"))
                    if isinstance(current.what, SimMirror)
                    else rng.choice(FAULTS)
                )
                writers += isinstance(current.what, SimWriter) and "crash" in fault
            for _ in range(rng.choice((1, 1, 2, 4, 9))):
                if current in world.processes:
                    world.step(current)
            if current in world.processes and fault != "none":
                world.step(current, fault)
    settle_mirrors(world)
    return world


def count(kind: str, histories: int, rules: list[str]) -> None:
    """Run histories and print what went wrong."""
    bad: collections.Counter[str] = collections.Counter()
    shortest: dict[str, World] = {}
    stale, started = 0, time.process_time()
    for seed in range(histories):
        if kind == "writers":
            world: World = random_history(seed, Model(**dict.fromkeys(rules, True)))
        else:
            world = random_mirror_history(seed, MirrorModel(**dict.fromkeys(rules, True)))
        stale += bool(world.stale)
        for what in world.bad:
            short = what[:12] + what[-60:]
            bad[short] += 1
            if short not in shortest or len(shortest[short].trace) > len(world.trace):
                shortest[short] = world
    print(f"{histories} histories, {stale} with a stale file, {time.process_time() - started:.1f} s", dict(bad))
    for short, world in shortest.items():
        print("-----", short, "\n  ", "\n   ".join([*world.bad, *world.trace]))


if __name__ == "__main__":
    count(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
