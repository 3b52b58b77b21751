"""The errors of Sluice, as a tree.

    SluiceError             something a person can act on: code, message, hint
    ├── SpecError           the specs have problems; holds all of them, each with its place
    ├── SetupError          this machine lacks something: Java, jars, a free port
    │   └── NotInstalled    a Python package is missing
    ├── UnreachableError    a system that Sluice talks to does not answer
    │   ├── KafkaAway       a cluster of Kafka does not answer
    │   ├── CatalogAway     a catalog cannot be read
    │   ├── RegistryAway    a schema registry does not answer
    │   ├── SecretsAway     a store of secrets does not answer
    │   ├── KafkaForbids    a login to Kafka may not do this
    │   └── NoTopic         the cluster has no topic of this name
    ├── NoRegistry          the cluster names no schema registry
    ├── NoSubject           the registry has no schema for a subject
    ├── BatchError          a batch was not published; the table is as it was
    │   ├── Transient       the next run may not meet it, though nothing was changed
    │   ├── SourceMissing   the table that a pipeline reads does not exist
    │   └── SparkEnded      Spark's process ended while it worked
    ├── TurnTaken           another process shows the rows of a table
    ├── Paused              somebody has paused the pipeline
    ├── Defect              an unexpected error; shown as one line, with its traceback in a log file
    └── RefusedError        continuing would skip or repeat messages; `sluice accept` decides
        ├── NotOwned        the table is not this pipeline's
        ├── RolledBack      main no longer contains the position's snapshot
        ├── TopicRecreated  the topic's id changed
        ├── SourceLost      the changes of the table that a pipeline reads are not known
        ├── OffsetsGone     Kafka no longer has the next messages
        ├── ColumnsChanged  the spec or the registry has columns that the table must not get
        ├── TableRecreated  the table was dropped, but its bad rows are still there
        ├── BadRowsStop     `bad_rows: stop` found bad rows
        └── Unexpected      an expectation with `else: stop` does not hold

Anything else that escapes a pipeline's run becomes a Defect; elsewhere it shows a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_PROBLEMS = 500  # nobody reads more, and the spelling help for each takes time
_TOO_MANY = "too-many-problems"


@dataclass(frozen=True, order=True)
class Where:
    """A place in a spec: lines and columns count from 1; both are 0 for a whole file or folder."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class Problem:
    """One problem in a spec, and what to do about it."""

    where: Where
    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = visible(f"{self.where}: {self.code}: {self.message}")
        return f"{text}\n  hint: {visible(self.hint)}" if self.hint else text


def visible(text: str) -> str:
    """A text without control characters, so that any value of a spec prints on one line."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


def _harmless(text: str) -> str:
    """A text of several lines without control characters: it may quote a message, a registry or a catalog."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def _first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The first problems in the order of their places, and a note if there are more."""
    ordered = sorted(set(problems))
    if len(ordered) <= MOST_PROBLEMS or any(problem.code == _TOO_MANY for problem in ordered):
        return tuple(ordered)
    last_problem = ordered[MOST_PROBLEMS - 1]
    message = f"there are more problems than these {MOST_PROBLEMS}"
    return (*ordered[:MOST_PROBLEMS], Problem(last_problem.where, _TOO_MANY, message, "fix these, then check again"))


class SluiceError(Exception):
    """An error that a person can act on. `accepts` is the change that `sluice accept` makes about it, or None."""

    accepts: object = None

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """The name of its class, or of the nearest one in this module."""
        return next(class_.__name__ for class_ in type(self).__mro__ if class_.__module__ == __name__)

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return _harmless(f"{text}\n  hint: {self.hint}" if self.hint else text)


class SpecError(SluiceError):
    """All problems that the specs have, in the order of their places."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = _first(problems)
        super().__init__("specs", f"{len(self.problems):,} problem{'s'[: len(self.problems) != 1]} in the specs")

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class SetupError(SluiceError):
    """This machine lacks something that Sluice needs."""


class NotInstalled(SetupError):
    """A package is missing; `sluice-slim` comes without some."""

    def __init__(self, package: str) -> None:
        hint = "install `sluice` in an environment of its own: `sluice-slim` has no Spark and no Dagster"
        super().__init__("not-installed", f"this needs the Python package {package}, which is not installed", hint)


class UnreachableError(SluiceError):
    """A system that Sluice talks to does not answer. `system` names it if that is so for everybody who needs it; it is empty where the
    answer to another request may be another one."""

    def __init__(self, code: str, message: str, hint: str = "", system: str = "") -> None:
        super().__init__(code, message, hint)
        self.system = system


class RegistryAway(UnreachableError):
    """A schema registry does not answer."""


class SecretsAway(UnreachableError):
    """A store of secrets does not answer."""


class KafkaAway(UnreachableError):
    """A cluster of Kafka does not answer."""


class CatalogAway(UnreachableError):
    """A catalog cannot be read."""


class KafkaForbids(UnreachableError):
    """The login is right, and may not do this."""


class NoTopic(UnreachableError):
    """The cluster has no topic of this name."""


class NoRegistry(SluiceError):
    """The cluster names no schema registry."""


class NoSubject(SluiceError):
    """The registry has no schema for a subject."""


class BatchError(SluiceError):
    """A batch was not published; the table is as it was before."""


class Transient(BatchError):
    """The next run may not meet it, though nothing was changed: another commit came first, or an answer was lost."""


class SourceMissing(BatchError):
    """The table that a pipeline reads does not exist."""


class SparkEnded(BatchError):
    """Spark's process ended while it worked."""


class Defect(SluiceError):
    """An error that Sluice does not expect: a bug, or an unknown situation."""


class RefusedError(SluiceError):
    """Continuing would skip or repeat messages, so a person decides."""

    def __init__(self, code: str, message: str, hint: str = "", accepts: object = None) -> None:
        super().__init__(code, message, hint)
        self.accepts = accepts


class TurnTaken(SluiceError):
    """Another process shows the rows of a table where a follower of this one would."""


class Paused(SluiceError):
    """Somebody has paused the pipeline."""


class NotOwned(RefusedError):
    """The table is not this pipeline's."""


class RolledBack(RefusedError):
    """Main no longer contains the snapshot that the position belongs to."""


class TopicRecreated(RefusedError):
    """The topic of this name is another one than before."""


class SourceLost(RefusedError):
    """The table that is read no longer has the rows that were read, or is another one."""


class OffsetsGone(RefusedError):
    """Kafka no longer has the messages that come next."""


class ColumnsChanged(RefusedError):
    """The spec or the registry has columns that `schema_changes` refuses, or that the table cannot add."""


class TableRecreated(RefusedError):
    """The table is new, but bad rows of its predecessor remain."""


class Unexpected(RefusedError):
    """An expectation of the pipeline says `else: stop`, and does not hold."""

    def __init__(self, expectation: str, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.expectation = expectation


class BadRowsStop(RefusedError):
    """The pipeline says `bad_rows: stop`, and there are bad rows."""


def kind_named(name: str) -> type[SluiceError]:
    """The class of this name; SluiceError where this version has none."""
    kind = globals().get(name)
    return kind if isinstance(kind, type) and issubclass(kind, SluiceError) else SluiceError
