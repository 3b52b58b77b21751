"""The key of a step `mask`: a new one encrypts from the next batch on. Hashes are made by the oldest one, so that they stay equal."""

from __future__ import annotations

import hashlib
import secrets as random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft
from framework.features.key_types import KeyType, KeyWork, Opened
from framework.language.options import OptionGroup
from framework.machine import user_key
from framework.plan import Pipeline, Step, columns_read
from framework.plan.pipeline import in_order
from framework.plan.totals import Totals
from framework.systems import mask_keys
from framework.systems.keyring import StoredKey

_BYTES = 32  # random ones of a key


@dataclass(frozen=True)
class Options(OptionGroup):
    """The key of a mask."""


class MaskLock(KeyType):
    does = "replaces the key of the steps `mask` that name the secret"
    keeps_former = True

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        masking = [pipeline for pipeline in draft.pipelines if any(_by(secret, step) for step in pipeline.steps)]
        if not masking and not draft.lacks_pipelines and not draft.without_columns:
            hint = f'write `mask: {{key: "${{secret:{secret}}}", columns: …}}` in a pipeline'
            draft.problems.append(Problem(where, "unused-keys", f"no pipeline masks by the secret `{secret}`", hint))
            return None
        encrypted_of: dict[object, frozenset[str]] = {}
        for _ in range(2):  # a topic that one pipeline sends to may be read by an earlier one
            problems = tuple(_of_identity(secret, draft.pipelines, where, encrypted_of))
        draft.problems.extend(problems)
        return None if problems else Opened(secrets=(secret,), opens=tuple(pipeline.table.identifier for pipeline in masking))

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        return {work.keys.secrets[0]: random.token_hex(_BYTES)}

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            mask_keys.refuse_short(name, value)

    def needed_for(self, work: KeyWork, key: StoredKey, stored: Sequence[StoredKey]) -> Sequence[str]:
        if key.state == "next":
            return ()
        tables = ", ".join(work.keys.opens) or "its tables"
        needs = [f"what it encrypted in {tables} and their bad rows cannot be read any more"]
        is_oldest = all(other.number is not None and key.number is not None and key.number <= other.number for other in stored)
        return [*needs, "equal values get other hashes from then on"] if is_oldest else needs

    def known_as(self, values: Mapping[str, str]) -> str:
        """A digest, by which the user of this machine can tell keys apart."""
        (value,) = values.values()
        digest = user_key.digest(value.encode()) or hashlib.sha256(value.encode()).hexdigest()
        return f"digest {digest.rpartition(':')[2][:8]}"


def _by(secret: str, step: Step) -> bool:
    return step.masks is not None and any(key.secret.name == secret for key in step.masks.keys)


def _of_identity(
    secret: str, pipelines: Sequence[Pipeline], where: Where, encrypted_of: dict[object, frozenset[str]]
) -> Iterator[Problem]:
    """The problems of encrypted columns by which rows are told apart: by a new key, an equal value gets another text. Adds the encrypted
    columns of each table and topic to those of `encrypted_of`."""
    for pipeline in in_order(pipelines):
        encrypted = _read_by(pipeline, encrypted_of)
        for step in pipeline.steps:
            compared = (*(step.memory.columns if step.memory else ()), *(step.join.on if step.join else ()))
            compared = (*compared, *(name for bounds in step.bounds for name in bounds.per))
            if names := encrypted.intersection(compared):
                yield _problem(secret, pipeline, min(names), f"the step `{step.name}` compares", where)
            encrypted = _after(step, encrypted)
            if step.join:
                encrypted |= encrypted_of.get(step.join.source.identifier, frozenset()) & set(step.join.take)
            if step.masks and step.masks.keys and step.masks.keys[0].secret.name == secret:
                encrypted |= {path[0] for path in step.masks.encrypted}
        rule = pipeline.table.rule
        if names := encrypted.intersection(rule.keys):
            yield _problem(secret, pipeline, min(names), "its table tells rows apart by", where)
        measures = rule.measures if isinstance(rule, Totals) else ()
        if counted := [
            measure.name for measure in measures if measure.row_column in encrypted and "distinct" in measure.function
        ]:
            yield _problem(secret, pipeline, counted[0], "counts by", where)
        unique = (name for expectation in pipeline.sets if expectation.kind != "rows" for name in expectation.columns)
        if names := encrypted.intersection(unique):
            yield _problem(secret, pipeline, min(names), "`expect` compares", where)
        encrypted_of[pipeline.table.identifier] = encrypted
        encrypted_of.update((follower.sends_to, encrypted) for follower in pipeline.also if follower.sends_to)


def _read_by(pipeline: Pipeline, encrypted_of: Mapping[object, frozenset[str]]) -> frozenset[str]:
    """The encrypted columns among those that a pipeline reads."""
    if pipeline.select:
        names = {
            f"{table.identifier}.{name}" for table in pipeline.read_tables for name in encrypted_of.get(table.identifier, ())
        }
        return frozenset(name for name, origins in pipeline.select.origins if names.intersection(origins))
    places = [
        *(table.identifier for table in pipeline.read_tables),
        *((topic.cluster, topic.kafka_name) for topic in pipeline.topics),
    ]
    return frozenset[str]().union(*(encrypted_of.get(place, ()) for place in places))


def _after(step: Step, names: frozenset[str]) -> frozenset[str]:
    """The columns after a step that have something of these columns."""
    assign: dict[str, str] = dict(step.assign) | ({step.each.into: step.each.list} if step.each else {})
    return frozenset(
        column.name
        for column in step.columns
        if (columns_read(assign[column.name], names) if column.name in assign else column.name in names)
    )


def _problem(secret: str, pipeline: Pipeline, name: str, says: str, where: Where) -> Problem:
    message = (
        f"`{name}` of {pipeline.name} is of values that `{secret}` encrypts, and {says} them: by a new key, equal values differ"
    )
    return Problem(where, "key-of-identity", message, "mask it by `hmac`, which stays equal")


TYPE = MaskLock()
