"""Mirrors, a publisher, pauses and crashes in random order: the table is right when all is quiet."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.spark.mirror.simulation import Process, World, published, run, standing


def crashed(world: World, after: int) -> bool:
    """Stop a mirror after so many steps; tell whether it ended before."""
    process = Process(world)
    for _ in range(after):
        process.step()
    process.steps.close()
    return process.result is not None


@pytest.mark.parametrize("own", [True, False])
def test_a_mirror_that_is_stopped_after_any_step_and_run_again_gives_the_same_table(*, own: bool) -> None:
    after, ended = 0, False
    while not ended:
        world = published(2, own=own)
        run(world)
        world.drop()
        for _ in range(7):
            world.append()
        ended = crashed(world, after)
        result = run(world)
        assert (world.target and world.target.rows) == world.present(), after
        assert (result.status, result.stale, standing(world)) == ("Replicating", (), [7]), after
        after += 1
    assert after > 20


def everything(world: World, chance: random.Random, event: str) -> None:
    events: dict[str, Callable[[], object]] = {
        "append": world.append,
        "bad": lambda: world.append(bad=chance.choice(["footer", "page"])),
        "repair": world.repair,
        "drop": world.drop,
        "erode": world.erode,
        "stale": world.make_stale,
        "days": lambda: world.tick(8 * 24),
        "root": lambda: setattr(world, "root", chance.choice(["ok", "empty", "unreadable"])),
    }
    events[event]()


def history(seed: int, *, own: bool, events: list[str]) -> World:
    """Return a world after a random history of publisher, mirrors, pauses and crashes, and three quiet passes."""
    chance = random.Random(seed)
    world = published(1, own=own)
    mirrors: dict[int, Process] = {}
    paused: dict[int, int] = {}
    budget = {**dict.fromkeys(events, 2), "append": 4}
    for moment in range(30 + seed % 90):
        world.tick(chance.choice([0, 0.2, 2]))
        if world.dying and chance.random() < 0.3:
            world.erode()
        elif chance.random() < 0.17:
            event = chance.choice([*events, "append"])
            budget[event] -= 1
            if budget[event] >= 0:
                everything(world, chance, event)
        else:
            mirror = chance.randrange(3)
            if paused.get(mirror, 0) > moment:
                continue
            if chance.random() < 0.06:
                paused[mirror] = moment + chance.randint(5, 50)
            elif chance.random() < 0.02:
                mirrors.pop(mirror, None)
            else:
                process = mirrors.setdefault(mirror, Process(world, chance.randint(1, 3)))
                for _ in range(chance.choice([1, 1, 2, 4, 9])):
                    process.step()
                if process.result is not None:
                    del mirrors[mirror]
    settle(world, list(mirrors.values()) if chance.random() < 0.7 else [])
    return world


def settle(world: World, processes: list[Process]) -> None:
    world.root = "ok"
    while world.dying:
        world.erode()
    world.repair()
    world.delete_stale()
    for process in processes:
        process.finish()
    for _ in range(3):
        result = run(world)
    assert result.status != "Failed", (result, world.trace)
    assert result.stale == (), world.trace


def check(seed: int, *, own: bool, events: list[str]) -> None:
    world = history(seed, own=own, events=events)
    have = None if world.target is None or world.target.state.dropped else world.target.rows
    assert have == world.present(), (seed, world.trace)


HISTORIES = [
    pytest.param([], id="quiet"),
    pytest.param(["bad", "repair"], id="bad files"),
    pytest.param(["drop", "days"], id="dropped at once"),
    pytest.param(["erode"], id="dropped entry by entry"),
    pytest.param(["stale", "root", "days"], id="stale files and a blind zone"),
    pytest.param(["bad", "repair", "drop", "root", "stale", "days"], id="everything"),
]


@pytest.mark.parametrize("events", HISTORIES)
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
def test_when_all_is_quiet_the_table_holds_every_file_of_the_present_folder_once(
    events: list[str], *, own: bool
) -> None:
    for seed in range(40):
        check(seed, own=own, events=events)


@pytest.mark.exhaustive
@pytest.mark.parametrize("events", HISTORIES)
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
def test_the_same_for_many_more_histories(events: list[str], *, own: bool) -> None:
    for seed in range(1000, 6000):
        check(seed, own=own, events=events)
