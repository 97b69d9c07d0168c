"""A case: everything that makes one world, as plain values that can be written down.

This module owns the difference between a seed and its meaning. A seed means another world after every change
of the draws. A case keeps the profile itself and the faults that struck, each with its moment and its draws.
So a test can keep a world that failed once, and the shrinker can make it smaller piece by piece.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..engine.profile import Profile
from ..engine.randomness import Stream, Streams
from ..faults.catalogue import FAULTS
from ..generate import draw
from ..world.fault_schedule import FaultSchedule
from ..world.world import SeedReport, World


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault: when it struck, and the random bits it used."""

    after: int
    """Virtual nanoseconds since the world began."""
    name: str
    draws: tuple[tuple[int, int], ...]
    """(how many bits, their value)."""


class RecordedStream(Stream):
    """Draws from another stream, and remembers."""

    __slots__ = ("draws",)

    def __init__(self, source: Stream) -> None:
        self.draws: list[tuple[int, int]] = []

        def bits(count: int) -> int:
            value = source.bits(count)
            self.draws.append((count, value))
            return value

        self._bits = bits


class RepeatedStream(Stream):
    """Gives the draws that were recorded; further ones come from a seed."""

    __slots__ = ()

    def __init__(self, draws: tuple[tuple[int, int], ...], seed: int) -> None:
        super().__init__(seed)
        left = list(reversed(draws))
        more = self._bits

        def bits(count: int) -> int:
            if left and left[-1][0] == count:
                return left.pop()[1]
            return more(count)

        self._bits = bits


class RecordingInjector(FaultSchedule):
    """Draws faults as ever, and keeps those that struck."""

    def __init__(self, world: World, kinds: list[str], gap: int) -> None:
        super().__init__(world, world.streams.stream("faults"), kinds, gap)
        self.strikes: list[Strike] = []

    def strike(self, name: str, stream: Stream) -> None:
        recorded = RecordedStream(stream)
        try:
            super().strike(name, recorded)
        finally:  # a world may fail while a fault strikes
            self.strikes.append(Strike(self._world.clock.elapsed, name, tuple(recorded.draws)))


class RepeatingInjector(FaultSchedule):
    """Lets the faults of a list strike, each at its moment."""

    def __init__(self, world: World, strikes: list[Strike]) -> None:
        super().__init__(world, world.streams.stream("faults"), [], 0)
        self._strikes = strikes

    def start(self) -> None:
        self._active = True
        clock = self._world.clock
        for number, strike in enumerate(self._strikes):
            clock.at(clock.start + strike.after, self._repeat, number, strike)

    def _repeat(self, number: int, strike: Strike) -> None:
        if self._active:
            seed = self._world.streams.seed_of(f"strike {number}")
            self.strike(strike.name, RepeatedStream(strike.draws, seed))


@dataclass(slots=True)
class Case:
    """One world. `strikes` None: faults are drawn from the seed."""

    seed: int
    profile: Profile
    strikes: list[Strike] | None = None
    rule: str = ""
    """The invariant it breaks, or broke once."""
    note: str = ""

    @classmethod
    def of_seed(cls, seed: int) -> "Case":
        return cls(seed, draw(Streams(seed)))

    def run(self, keep_trace: bool = False) -> SeedReport:
        world = World(self.seed, self.profile, keep_trace)
        if self.strikes is not None:
            world.fault_schedule = RepeatingInjector(world, self.strikes)
        return world.run()

    def recorded(self) -> tuple["Case", SeedReport]:
        """Run it, and give the same world with its faults written down."""
        world = World(self.seed, self.profile)
        fault_schedule = RecordingInjector(world, self.profile.faults, self.profile.fault_gap)
        world.fault_schedule = fault_schedule
        report = world.run()
        return replace(self, strikes=fault_schedule.strikes), report

    # --- as plain values ---

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"seed": self.seed, "rule": self.rule, "note": self.note}
        found["profile"] = _plain(self.profile)
        if self.strikes is not None:
            found["strikes"] = [_plain(strike) for strike in self.strikes]
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Case":
        """A field that the profile has got since is what a plain scenario would have (see `PLAIN`).

        Raises `ValueError` for a value of another kind than is wanted, and for a fault kind or a field that
        there is not.
        """
        if isinstance(found, dict) and "seed" not in found:
            raise ValueError("world has no seed")
        case: Case = _typed(cls, found, "world")
        for strike in case.strikes or ():
            if strike.name not in FAULTS:
                raise ValueError(f"no such fault kind: {strike.name}")
        return case


PLAIN: dict[type, Callable[[], Any]] = {bool: bool, int: int, float: float, str: str}
"""Type -> the empty value of a required field of that type, where a case does not name the field."""

KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def _plain(value: Any) -> Any:
    """Fields at their defaults are left out."""
    if is_dataclass(value):
        return {
            each.name: _plain(found)
            for each in fields(value)
            if (found := getattr(value, each.name)) != _default(each)
        }
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _default(each: Any) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return each.default


def _typed(kind: Any, value: Any, what: str) -> Any:
    """Turn plain values back into typed ones, by the annotations. `what` names the value in errors."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _typed(next(each for each in get_args(kind) if each is not type(None)), value, what)
    if origin in (list, tuple):
        return _several(origin, get_args(kind), value, what)
    if is_dataclass(kind):
        return _of_fields(kind, value, what)
    if issubclass(kind, Enum):
        if not isinstance(value, str) or value not in kind.__members__:
            raise ValueError(f"{what} is {value!r}, not one of {', '.join(kind.__members__)}")
        return kind[value]
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ValueError(f"{what} is {value!r}, not {KINDS[kind]}")
    return value


def _several(origin: Any, kinds: tuple[Any, ...], value: Any, what: str) -> Any:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {value!r}, not a list")
    if origin is tuple and kinds[-1] is not Ellipsis:
        if len(value) != len(kinds):
            raise ValueError(f"{what} has {len(value)} values, not {len(kinds)}")
        return tuple(_typed(kind, each, what) for kind, each in zip(kinds, value, strict=True))
    return origin(_typed(kinds[0], each, f"{what}[{number}]") for number, each in enumerate(value))


def _of_fields(kind: Any, value: Any, what: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {value!r}, not an object")
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}
    unknown = [name for name in value if name not in known]
    if unknown:
        raise ValueError(f"{kind.__name__} has no field {unknown[0]!r}")
    given = {name: _typed(hints[name], each, f"{what}.{name}") for name, each in value.items()}
    for each in fields(kind):
        if each.name not in given and _default(each) is MISSING:
            if hints[each.name] not in PLAIN:
                raise ValueError(f"{what} has no {each.name}")
            given[each.name] = PLAIN[hints[each.name]]()
    return kind(**given)
