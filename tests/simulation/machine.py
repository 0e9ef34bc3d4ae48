"""Hypothesis drives the world: it chooses who goes next, what is lost, who dies, how much time passes."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.simulation.mirrors import MirrorWorld, SimMirror, settle_mirrors
from tests.simulation.settle import settle
from tests.simulation.source import SOURCES
from tests.simulation.world import DAY, FAULTS, Model, SimDropper, SimReplacer, SimWriter, World

_WRITERS = 4
_FAULTS = 3


class ViolatedError(AssertionError):
    """A history after which something does not hold."""


class WriterMachine(RuleBasedStateMachine):
    """Writers, a drop, the service and a clock, in any order."""

    model = Model()

    @initialize(source=st.sampled_from(SOURCES), fickle=st.booleans())
    def begin(self, source, fickle):
        self.world = World(source, self.model, fickle=fickle)
        self.faults = 0

    @precondition(lambda self: self.world.readings < _WRITERS)
    @rule(calls=st.sampled_from((1, 2, 3, 99)), seed=st.integers(0, 255), steps=st.integers(0, 30))
    def writer_starts(self, calls, seed, steps):
        name = f"W{self.world.readings + 1}"
        process = self.world.start(SimWriter(self.world, name, max_calls=calls, rng=random.Random(seed)))
        self._go(process, steps, "none")

    @precondition(lambda self: self.world.readings < _WRITERS)
    @rule(calls=st.sampled_from((1, 2, 99)), seconds=st.sampled_from((1.0, 6.0, 4000.0)), moves=st.integers(0, 9))
    def all_others_pause(self, calls, seconds, moves):
        """A writer comes and goes, and the service works, while everybody else is stopped."""
        self.world.run_to_end(
            self.world.start(SimWriter(self.world, f"W{self.world.readings + 1}", max_calls=calls, rng=None))
        )
        self.service_works(9, moves, 0)
        self.world.pass_time(seconds)

    @precondition(lambda self: not self.world.drops)
    @rule(what=st.sampled_from((SimDropper, SimReplacer)), steps=st.integers(0, 30))
    def drop_starts(self, what, steps):
        self._go(self.world.start(what(self.world)), steps, "none")

    @precondition(lambda self: self.world.processes)
    @rule(who=st.integers(0, 4), steps=st.integers(0, 12), fault=st.sampled_from(FAULTS))
    def goes_on(self, who, steps, fault):
        if self.faults == _FAULTS:
            fault = "none"
        self.faults += fault != "none"
        self._go(self.world.processes[who % len(self.world.processes)], steps, fault)

    @rule(seconds=st.sampled_from((1.0, 6.0, 4000.0, 8 * DAY)))
    def time_passes(self, seconds):
        self.world.pass_time(seconds)

    @rule(files=st.integers(0, 9), moves=st.integers(0, 9), seed=st.integers(0, 255))
    def service_works(self, files, moves, seed):
        for _ in range(files):
            self.world.service.apply_one()
        self.world.service.move(random.Random(seed), moves)

    @precondition(lambda self: self.world.network)
    @rule(which=st.integers(0, 4))
    def network_delivers(self, which):
        self.world.deliver(which % len(self.world.network))

    @precondition(lambda self: not self.world.operator_deletes and len(self.world.chain) > 1)
    @rule(calls=st.sampled_from((0, 1, 2)))
    def operator_repairs(self, calls):
        """The last file is deleted before it was applied; a new writer may take its place while an old one lives."""
        self.world.operator_deletes_last()
        if calls and self.world.operator_deletes:
            self.world.run_to_end(
                self.world.start(SimWriter(self.world, f"W{self.world.readings + 1}", max_calls=calls, rng=None))
            )

    def teardown(self):
        if not hasattr(self, "world"):
            return
        if settle(self.world):
            raise ViolatedError("\n".join([*self.world.bad, *self.world.trace]))

    def _go(self, process, steps, fault):
        for _ in range(steps):
            if process in self.world.processes:
                self.world.step(process)
        if process in self.world.processes and fault != "none":
            self.world.step(process, fault)


class MirrorMachine(RuleBasedStateMachine):
    """Up to three mirrors on one table, with writers and drops at work, in any order."""

    @initialize(source=st.sampled_from(SOURCES), calls=st.sampled_from((1, 3, 99)))
    def begin(self, source, calls):
        self.world = MirrorWorld(source)
        self.crashes = 0
        self._writer(calls)

    @precondition(lambda self: self.world.readings < _WRITERS)
    @rule(calls=st.sampled_from((1, 2, 99)))
    def writer_works(self, calls):
        self._writer(calls)

    @precondition(lambda self: sum(isinstance(p.what, SimMirror) for p in self.world.processes) < 3)
    @rule(limit=st.integers(1, 3), steps=st.integers(0, 40))
    def mirror_starts(self, limit, steps):
        self._go(self.world.start_mirror(limit), steps, "none")

    @precondition(lambda self: self.world.processes)
    @rule(
        who=st.integers(0, 3), steps=st.integers(0, 15), fault=st.sampled_from(("none", "crash before", "crash after"))
    )
    def goes_on(self, who, steps, fault):
        if self.crashes == _FAULTS:
            fault = "none"
        self.crashes += fault != "none"
        self._go(self.world.processes[who % len(self.world.processes)], steps, fault)

    @precondition(lambda self: self.world.drops < 2)
    @rule(what=st.sampled_from((SimDropper, SimReplacer)), steps=st.sampled_from((1, 3, 6, 99)))
    def drop_starts(self, what, steps):
        self._go(self.world.start(what(self.world)), steps, "none")

    @rule(seconds=st.sampled_from((6.0, 8 * DAY)))
    def time_passes(self, seconds):
        self.world.pass_time(seconds)

    def teardown(self):
        if hasattr(self, "world") and settle_mirrors(self.world):
            raise ViolatedError("\n".join([*self.world.bad, *self.world.trace]))

    def _writer(self, calls):
        name = f"W{self.world.readings + 1}"
        self.world.run_to_end(self.world.start(SimWriter(self.world, name, max_calls=calls, rng=None)))

    def _go(self, process, steps, fault):
        for _ in range(steps):
            if process in self.world.processes:
                self.world.step(process)
        if process in self.world.processes and fault != "none":
            self.world.step(process, fault)
