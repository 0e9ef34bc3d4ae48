"""The end of a history: everybody who lives ends, late requests land, a last writer finishes; then all must agree."""

from __future__ import annotations

from openmirror_writer.errors import ApplyError, ResumeMismatchError, TableGoneError, UnknownPositionError
from openmirror_writer.replay import replay
from openmirror_writer.storage import DeleteFile
from openmirror_writer.zone import LandingZone
from tests.simulation.source import sorted_values
from tests.simulation.world import SimDropper, SimReplacer, SimWriter, World, as_lists

_TRIES = 6


def settle(world: World) -> list[str]:
    """Finish a history; return what is wrong with it."""
    world.is_settling = True
    for process in list(world.processes):
        world.run_to_end(process)
    while world.network:
        world.deliver(0)
    while world.service.apply_one():
        pass
    if last_writer_ends(world):
        while world.service.apply_one():
            pass
        _compare(world)
    _check_successes(world)
    return world.bad


def last_writer_ends(world: World) -> bool:
    """One writer without faults; an operator does between its tries what the errors tell. False: it may not end."""
    for attempt in range(_TRIES):
        world.store.now += 60
        writer = SimWriter(world, f"last{attempt}", max_calls=99, rng=None)
        process = world.start(writer)
        world.run_to_end(process)
        if writer.done:
            return True
        if isinstance(writer.error, UnknownPositionError):
            _, told, late = writer.error.message.rpartition("delete them: ")
            for path in late.split(", ") if told else ():
                world.log(f"operator deletes {path}")
                world.carry_out(DeleteFile(path, None))
            if not told:
                world.run_to_end(world.start(SimDropper(world)))
        elif isinstance(writer.error, TableGoneError) and (world.drops or world.operator_deletes):
            is_replaced = "being replaced" in writer.error.message
            world.run_to_end(world.start(SimReplacer(world) if is_replaced else SimDropper(world)))
        elif isinstance(writer.error, ResumeMismatchError) and (world.fickle or world.operator_deletes):
            return False  # told aloud, as it must be
    world.fail(f"no writer can finish: {writer.error!r}")
    return False


def _compare(world: World) -> None:
    want, service, generation = world.source.table(), world.service, world.generation()
    if generation in world.dropped and not world.model.no_generation:
        world.fail(f"the dropped generation {generation} lives on")
    complete = service.generation == generation and service.mark == max(world.files(), default=0)
    if world.operator_deletes and not complete:
        return  # the service reports a gap or a fork: told aloud, as it must be
    if not complete:
        world.fail(f"the service stopped behind file {service.mark}: {service.refused}")
    elif sorted_values(service.rows) != want:
        world.fail(f"the table is {sorted_values(service.rows)}, the source is {want}")
    try:
        got = as_lists(replay(LandingZone(world.restored())).get("t"))
    except ApplyError as error:
        world.fail(f"replay refuses a zone that the service took: {error}")
        return
    if got != want:
        world.fail(f"replay gives {got}, the source is {want}")


def _check_successes(world: World) -> None:
    """A writer that ended well has all its files in the chain, unless somebody else deleted files."""
    in_chain = {file.follower for file in world.chain}
    lost = {
        file.records[0].writer for file in world.stale if file.follower not in in_chain and len(file.records) == 1
    }  # of text with two records, or with none left, nobody can tell whose it is
    for what in world.finished:
        if (
            isinstance(what, SimWriter)
            and what.done
            and what.name in lost
            and not (world.drops or world.operator_deletes)
        ):
            world.fail(f"{what.name} ended well, and a file of it is not in the table")
