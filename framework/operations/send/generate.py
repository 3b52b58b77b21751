"""Generated messages, from a topic's `generate:`, and their producer.

*Guarantee* The same seed and start give the same messages. A message that Kafka did not accept is an error.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal as Number
from fractions import Fraction
from random import Random
from typing import Any

from framework.base.errors import SluiceError, UnreachableError
from framework.base.patience import KAFKA_TAKES
from framework.base.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP_NTZ, Decimal, Type, is_integral
from framework.core.kafka.login import client_settings
from framework.documents.topic.generated import PatternPart, constant, parts
from framework.messages.encoding.schema_writer import Writer
from framework.messages.formats import DeclaredColumns, OneColumn, RegisteredSchema, find
from framework.plan import Generated, GeneratedFields, MessagePart, SecretStore, Topic

Writers = Mapping[MessagePart, Writer]
_Make = Callable[[Random, datetime], Any]
_REMEMBERED = 1000  # messages that can come again


@dataclass(frozen=True)
class GeneratedMessage:
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None  # None: by the key, or any


@dataclass(frozen=True)
class Sent:
    """The messages that Kafka accepted, and the time that it took."""

    messages: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.messages / max(self.seconds, 0.001)


def messages(topic: Topic, seed: int | None, start: datetime, writers: Writers | None = None) -> Iterator[GeneratedMessage]:
    """Endless messages. `now` is the start for the first message, and advances at the topic's rate. `writers` write a `key` or a `value`
    whose schema is in a registry."""
    generator = topic.generator
    assert generator is not None
    random = Random(seed)
    begin = start.astimezone(timezone.utc).replace(tzinfo=None)
    usual_makers = _makers(generator.fields)
    outliers = [(outlier.share, {**usual_makers, **_makers(outlier.fields)}) for outlier in generator.outliers]
    sent_messages: deque[GeneratedMessage] = deque(maxlen=_REMEMBERED)
    for number in itertools.count():
        if sent_messages and random.random() < generator.repeats:
            yield random.choice(sent_messages)
            continue
        moment = begin + timedelta(seconds=number / generator.rate)
        makers = _chosen(random, usual_makers, outliers)
        columns = {name: make(random, moment) for name, make in makers.items()}
        try:
            message = _message(topic, columns, moment, writers or {})
        except ValueError as error:
            raise _unsuited(topic, str(error)) from None
        if generator.repeats:
            sent_messages.append(message)
        yield message


def _makers(fields: GeneratedFields) -> dict[str, _Make]:
    return {name: _maker(type_, way) for name, type_, way in fields}


def _chosen(
    random: Random, usual_makers: dict[str, _Make], outliers: Sequence[tuple[float, dict[str, _Make]]]
) -> dict[str, _Make]:
    """The makers of one message: the usual ones, or those of an outlier. Without outliers no random number is drawn for it."""
    draw = random.random() if outliers else 0.0
    for share, makers in outliers:
        if draw < share:
            return makers
        draw -= share
    return usual_makers


def refuse(topic: Topic, writers: Writers) -> None:
    """Raise if a message would not fit its schema: tries each text of `one_of`, and both ends of `between`."""
    generator = topic.generator
    assert generator is not None
    format_ = find("value", topic.value)
    if isinstance(format_, RegisteredSchema) and format_.cannot_generate:
        raise _unsuited(topic, format_.cannot_generate)
    fields = list(generator.fields)
    field_lists = [fields]
    for outlier in generator.outliers:
        outlier_fields = {name: (name, type_, way) for name, type_, way in outlier.fields}
        fields_of_outlier = [*(outlier_fields.pop(field[0], field) for field in fields), *outlier_fields.values()]
        field_lists += _extremes(fields_of_outlier)
    field_lists += _extremes(fields)
    for trial_fields in field_lists:
        trial = replace(topic, generator=replace(generator, fields=tuple(trial_fields), outliers=()))
        next(messages(trial, 0, datetime.now(timezone.utc), writers))


def _extremes(fields: Sequence[tuple[str, Type, Generated]]) -> Iterator[list[tuple[str, Type, Generated]]]:
    """The fields once for each text of `one_of` and each end of `between`, as the only value."""
    for index, (name, type_, way) in enumerate(fields):
        ways = [Generated((text,), None, None) for text in way.one_of or ()]
        ways += [Generated(None, (bound, bound), None) for bound in way.between or ()]
        for only_way in ways:
            yield [*fields[:index], (name, type_, only_way), *fields[index + 1 :]]


def _unsuited(topic: Topic, reason: str) -> SluiceError:
    hint = f"correct `generate` of the topic at {topic.where}: it has to name every field that has no default and cannot be null"
    return SluiceError("cannot-generate", f"no messages for `{topic.name}` can be generated: {reason}", hint)


def ensure_topic(topic: Topic, secrets: SecretStore) -> bool:
    """Create the topic if Kafka does not have it. Returns whether it was created."""
    from framework.core.kafka.topics import ensure

    return ensure(topic.cluster, secrets, topic.kafka_name, topic.partitions)


def send(
    topic: Topic,
    secrets: SecretStore,
    messages_to_send: Iterable[GeneratedMessage],
    rate: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[int], None] = lambda _: None,
    arrived: Callable[[int, int], None] = lambda *_: None,
) -> Sent:
    """Send messages, `rate` per second or as fast as Kafka accepts them, until there are no more or `stopped` is true. `arrived` gets
    the partition and the offset of each, `tell` gets their number from time to time."""
    outbox = _Outbox(topic, secrets, tell, arrived)
    start_time = time.monotonic()
    try:
        for number, message in enumerate(messages_to_send):
            while rate is not None and (seconds_early := start_time + number / rate - time.monotonic()) > 0 and not stopped():
                outbox.wait(min(seconds_early, 0.2))
            if stopped() or outbox.refused:
                break
            outbox.put(message)
    except SluiceError:  # raised by the generator of the messages
        outbox.flush()
        raise
    outbox.flush()
    return Sent(outbox.delivered, time.monotonic() - start_time)


class _Outbox:
    """A producer, with the number of delivered messages and its errors."""

    def __init__(
        self, topic: Topic, secrets: SecretStore, tell: Callable[[int], None], arrived: Callable[[int, int], None]
    ) -> None:
        from confluent_kafka import Producer

        self.topic = topic
        self.tell = tell
        self.arrived = arrived
        self.delivered = self.refused = self._put = 0
        self._reason = ""
        settings = {
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 50,
            "message.timeout.ms": round(KAFKA_TAKES * 1000),
            "partitioner": "murmur2_random",  # the same partition for a key as Java's clients
            "log_level": 0,
        }
        self._producer = Producer({**client_settings(topic.cluster, secrets), **settings})

    def put(self, message: GeneratedMessage) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(
                    self.topic.kafka_name,
                    message.value,
                    message.key,
                    -1 if message.partition is None else message.partition,
                    headers=list(message.headers),
                    on_delivery=self._answered,
                )
            except BufferError:  # full: wait for Kafka
                self.wait(0.2)
                continue
            except KafkaException as error:
                self.refused += 1
                self._reason = self._reason or error.args[0].str()
            break
        self._put += 1
        if self._put % 1000 == 0:
            self.wait(0)

    def wait(self, seconds: float) -> None:
        self._producer.poll(seconds)
        self.tell(self.delivered)

    def flush(self) -> None:
        while self._producer.flush(0.2):
            self.tell(self.delivered)
        self.tell(self.delivered)
        if self.refused:
            raise UnreachableError(
                "not-delivered",
                f"Kafka accepted {self.delivered:,} messages for {self.topic.kafka_name}, but not {self.refused:,}: {self._reason}",
                f"check Kafka at {self.topic.cluster.bootstrap}, then generate again",
            )

    def _answered(self, error: Any, message: Any) -> None:
        if error is None:
            self.delivered += 1
            self.arrived(message.partition(), message.offset())
        else:
            self.refused += 1
            self._reason = self._reason or error.str()


def _message(topic: Topic, columns: dict[str, Any], moment: datetime, writers: Writers) -> GeneratedMessage:
    key = {name: columns.pop(name) for name in list(columns) if name.partition(".")[0] in topic.key_columns}
    headers = tuple((name, str(columns.pop(name)).encode()) for name in topic.headers if name in columns)
    if topic.changes and "value" not in writers:
        columns = dict(topic.changes.created(_nested(columns), moment))
    return GeneratedMessage(
        _encoded("key", topic, key, writers) if key else None, _encoded("value", topic, columns, writers), headers
    )


def _encoded(part: MessagePart, topic: Topic, columns: dict[str, Any], writers: Writers) -> bytes:
    if part in writers:
        return writers[part].columns(_nested(columns))
    format_ = find(part, topic.value if part == "value" else topic.key_format)
    if isinstance(format_, DeclaredColumns):
        return format_.encode(topic.columns_of(part), _nested(columns))
    assert isinstance(format_, OneColumn)
    return format_.encode(next(iter(columns.values()), ""))


def _nested(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns as nested objects: `location.floor` is the field `floor` of the object `location`."""
    root: dict[str, Any] = {}
    for name, value in columns.items():
        *parents, field = name.split(".")
        place = root
        for parent in parents:
            place = place.setdefault(parent, {})
        place[field] = value
    return root


def _maker(type_: Type, way: Generated) -> _Make:
    if way.one_of is not None:
        values = [constant(type_, text) for text in way.one_of]
        return lambda random, _: random.choice(values)
    if way.between is not None:
        return _between(type_, *way.between)
    if way.pattern is not None:
        places = parts(way.pattern)
        return lambda random, _: "".join(_some(random, part) for part in places)
    if way.last is not None:
        seconds = way.last
        return lambda random, moment: _time(type_, moment - timedelta(seconds=random.uniform(0, seconds)))
    return lambda _, moment: _time(type_, moment)


def _some(random: Random, part: PatternPart) -> str:
    return "".join(random.choices(part.characters, k=random.randint(part.least, part.most)))


def _between(type_: Type, low: float, high: float) -> _Make:
    if isinstance(type_, Decimal):
        scale = type_.scale
        lowest, highest = (int(Fraction(str(bound)) * 10**scale) for bound in (low, high))
        return lambda random, _: Number(f"{random.randint(lowest, highest)}e-{scale}")
    if is_integral(type_):
        return lambda random, _: random.randint(int(low), int(high))
    if type_ == STRING:
        make = _between(BIGINT if isinstance(low, int) and isinstance(high, int) else DOUBLE, low, high)
        return lambda random, moment: str(make(random, moment))
    # Two decimal places, and more only if the bounds have more.
    places = max(2, *(-int(Number(str(bound)).as_tuple().exponent) for bound in (low, high)))
    return lambda random, _: round(random.uniform(low, high), places)


def _time(type_: Type, moment: datetime) -> Any:
    if type_ == BIGINT:
        return int(moment.replace(tzinfo=timezone.utc).timestamp() * 1000)
    if type_ == DATE:
        return moment.date().isoformat()
    return moment.isoformat(timespec="milliseconds") + ("" if type_ == TIMESTAMP_NTZ else "Z")
