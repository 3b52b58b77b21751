"""Systems that do not answer: told once, tried by one, and over for all at once."""

from __future__ import annotations

from framework.base.errors import CatalogAway, KafkaAway
from framework.core.stream.outages import Outages

KAFKA = KafkaAway("kafka-unreachable", "Kafka at a does not answer", "start it", "Kafka at a")
SILENT = KafkaAway("kafka-unreachable", "Kafka at a does not answer: timed out", "start it", "Kafka at a")
OTHER = KafkaAway("kafka-unreachable", "Kafka at b does not answer", "start it", "Kafka at b")
CATALOG = CatalogAway("catalog-unreachable", "the catalog does not answer", "start it", "the catalog")


def test_an_outage_is_told_once_and_tried_by_one() -> None:
    outages = Outages(lambda: 7.0)
    assert outages.failed("first", CATALOG)[0]
    assert not outages.failed("second", CATALOG)[0]
    assert not outages.failed("third", CATALOG)[0]
    assert not outages.failed("first", CATALOG)[0]  # tried again
    assert [outages.holds(name) for name in ("first", "second", "third", "other")] == [False, True, True, False]
    assert outages.went_well("other") == []
    (over,) = outages.went_well("first")
    assert (over.error, set(over.held)) == (CATALOG, {"second", "third"})
    assert not outages.holds("second")
    assert outages.failed("second", CATALOG)[0]  # another one


def test_another_one_tries_where_the_first_no_longer_does() -> None:
    outages = Outages(lambda: 7.0)
    for name in ("first", "second", "third"):
        outages.failed(name, CATALOG)
    (successor,) = outages.left("first")
    assert not outages.holds(successor)
    (other,) = {"second", "third"} - {successor}
    assert outages.holds(other)
    assert outages.left(other) == []
    assert outages.left(successor) == []
    assert list(outages) == []


def test_a_look_at_a_source_finds_the_end() -> None:
    outages = Outages(lambda: 7.0)
    assert outages.failed("cluster a", KAFKA)[0]
    assert outages.failed("cluster b", OTHER)[0]
    assert not outages.failed("cluster a", SILENT)[0]  # which is the same
    assert not outages.failed("reader", SILENT)[0]  # whose turn was under way
    assert outages.holds("reader")
    assert outages.concern({"reader"}) and outages.concern({"other", "cluster b"}) and not outages.concern({"other"})
    (over,) = outages.went_well("cluster a")
    assert (over.error, set(over.held)) == (KAFKA, {"reader"})
    assert not outages.holds("reader")
    assert [outage.error for outage in outages] == [OTHER]


def test_nobody_is_held_for_ever_by_the_trouble_of_another() -> None:
    seconds = [7.0]
    outages = Outages(lambda: seconds[0])
    outages.failed("first", CATALOG)
    outages.failed("second", CATALOG)
    assert outages.holds("second")
    seconds[0] += 61
    assert not outages.holds("second")
    outages.failed("second", CATALOG)
    assert outages.holds("second")
    outages.failed("third", CATALOG)
    seconds[0] += 61
    assert [outages.holds(name) for name in ("second", "third")] == [False, True]  # one after another
    outages.failed("second", CATALOG)
    assert [outages.holds(name) for name in ("second", "third")] == [True, True]
    seconds[0] += 11
    assert [outages.holds(name) for name in ("second", "third")] == [True, False]
    seconds[0] += 61
    assert outages.went_well("second") == []  # only the first one's table is away
    assert not outages.holds("second") and outages.concern({"first"})


def test_a_look_that_does_not_try_ends_nothing() -> None:
    outages = Outages(lambda: 7.0)
    outages.failed("reader", KAFKA)
    outages.failed("cluster a", KAFKA)
    assert outages.went_well("cluster a") == []
    assert outages.left("reader") == []  # nobody else waits
    assert list(outages) == []


def test_no_two_outages_wait_for_each_other() -> None:
    outages = Outages(lambda: 7.0)
    outages.failed("first", CATALOG)
    outages.failed("second", OTHER)
    assert outages.failed("first", OTHER) == (False, [])  # its catalog answered, or was not asked
    assert outages.failed("second", CATALOG)[0]
    tries = {outage.tries for outage in outages}
    assert all(not outages.holds(name) for name in tries)
    waiting = {name for name in ("first", "second") if outages.holds(name)}
    assert waiting | tries == {"first", "second"}
