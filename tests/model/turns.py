"""A model of senders to a topic, by the order of `Turn.java` and `Sender.java`: every schedule of some processes, one step at a time.

A sender takes the turn, ends the producers of all senders, reads which version of a row was committed, starts a producer of its own, asks
whether the turn is still its own, and sends. The topic is right if no version in it is older than one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SENDS = ("take", "end", "read", "start", "ask", "send")
UNFENCED = ("read", "send")
COMMITS = ("commit",)


@dataclass
class World:
    """The table, and what Kafka knows: the epochs of the turn and of two senders, and the versions in the topic."""

    committed: int = 0
    turn: int = 0
    senders: list[int] = field(default_factory=lambda: [0, 0])
    topic: list[int] = field(default_factory=list)


@dataclass
class Process:
    """A process that does these steps, with the producer of one of the senders. A second one may use the other sender's."""

    steps: tuple[str, ...]
    sender: int = 0
    turn: int | None = None
    epoch: int | None = None
    version: int = 0
    has_ended: bool = False

    def do(self, step: str, world: World) -> None:
        if not self.has_ended:
            getattr(self, f"_{step}")(world)

    def _commit(self, world: World) -> None:
        world.committed += 1

    def _take(self, world: World) -> None:
        world.turn += 1
        self.turn = world.turn

    def _end(self, world: World) -> None:
        world.senders = [epoch + 1 for epoch in world.senders]

    def _read(self, world: World) -> None:
        self.version = world.committed

    def _start(self, world: World) -> None:
        world.senders[self.sender] += 1
        self.epoch = world.senders[self.sender]

    def _ask(self, world: World) -> None:
        self.has_ended = world.turn != self.turn

    def _send(self, world: World) -> None:
        if self.epoch in (None, world.senders[self.sender]):
            world.topic.append(self.version)


def topics(*programs: tuple[str, ...]) -> Iterator[list[int]]:
    """Yield the topic at the end of every schedule of processes that do these steps."""
    for schedule in _schedules([len(program) for program in programs]):
        world = World()
        processes = [Process(program, sender=number % 2) for number, program in enumerate(programs)]
        done = [0] * len(programs)
        for number in schedule:
            process = processes[number]
            process.do(process.steps[done[number]], world)
            done[number] += 1
        yield world.topic


def _schedules(left: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not any(left):
        yield ()
    for number, count in enumerate(left):
        if count:
            for rest in _schedules([*left[:number], count - 1, *left[number + 1 :]]):
                yield (number, *rest)


def is_in_order(versions: list[int]) -> bool:
    return versions == sorted(versions)
