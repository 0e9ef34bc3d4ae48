"""When a writer publishes what waits, and records a position that moved without rows. Pure: the clock is given."""

from __future__ import annotations

from collections.abc import Callable


class Schedule:
    """Remembers when the oldest buffered row came, and when the zone last learned the position.

    Attributes:
        recorded_at: The time of the clock at the last `recorded`, or when it was made.
    """

    def __init__(self, *, age: float | None, advance_interval: float, clock: Callable[[], float]) -> None:
        """Begin with nothing waiting and the position just recorded.

        Args:
            age: Seconds after which buffered rows are published; None = never for their age.
            advance_interval: Seconds after which a position is recorded though no row came.
            clock: Seconds that never go back, such as `time.monotonic`.
        """
        self._age = age
        self._advance_interval = advance_interval
        self._clock = clock
        self._oldest_row_at: float | None = None
        self.recorded_at = clock()

    @property
    def is_file_due(self) -> bool:
        """Whether buffered rows have waited long enough."""
        oldest, age = self._oldest_row_at, self._age
        return oldest is not None and age is not None and self._clock() - oldest >= age

    @property
    def is_record_due(self) -> bool:
        """Whether the zone has not learned the position for long enough."""
        return self._clock() - self.recorded_at >= self._advance_interval

    def call_ended(self, *, rows_wait: bool) -> None:
        """Note at the end of a call whether rows are buffered: the age of a row counts from the end of its call."""
        if not rows_wait:
            self._oldest_row_at = None
        elif self._oldest_row_at is None:
            self._oldest_row_at = self._clock()

    def buffer_left(self) -> None:
        """Note that the rows which waited went into a file or were discarded."""
        self._oldest_row_at = None

    def recorded(self) -> None:
        """Note that a file or a record told the position, or that there was nothing to tell."""
        self.recorded_at = self._clock()
