"""Output about what left the tables: rows that followers sent to topics, and mails that the local mail server got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from email import message_from_bytes, policy
from pathlib import Path

from rich.console import Console

from framework.host.cli._landed import print_table, printable
from framework.machine import services
from framework.machine.services import ServiceState, mail
from framework.plan import Plan

_MAX_COUNTED = 1_000_000  # messages of a topic that are counted one by one: its offsets count the ends of transactions, too


def messages_sent(plan: Plan, kafka: ServiceState) -> Counter[str]:
    """The number of messages that each topic of `also` in this Kafka has."""
    from framework.base.errors import NoTopic
    from framework.core.kafka.newest_messages import read_newest

    sent: Counter[str] = Counter()
    for cluster, name in {follower.sends_to for pipeline in plan.pipelines for follower in pipeline.also if follower.sends_to}:
        if cluster.bootstrap == kafka.address:
            with suppress(NoTopic):  # before the first row is sent
                sent[name] = len(read_newest(cluster, plan.secrets, name, _MAX_COUNTED).messages)
    return sent


def received() -> tuple[Path, ...]:
    """The mails that the local mail server has, the oldest first."""
    return tuple(sorted((services.folder("mail") / mail.DATA).glob("*.eml")))


def show_topics(console: Console, plan: Plan, sent: Counter[str]) -> None:
    """Print how many rows were sent to each topic, and from which tables."""
    rows = []
    for name, count in sorted(sent.items()):
        senders = [
            pipeline for pipeline in plan.pipelines if any((also.sends_to or (None, ""))[1] == name for also in pipeline.also)
        ]
        rows.append((", ".join(pipeline.table.identifier for pipeline in senders), name, f"{count:,}"))
    if rows:
        print_table(console, "Rows sent on to topics", ("table", "topic", "messages"), rows, texts=2)


def show_mails(console: Console, mails: Iterable[Path], page: str) -> None:
    """Print a line for each mail, with the address of its own page below `page`."""
    lines = []
    for file in mails:
        message = message_from_bytes(file.read_bytes(), policy=policy.default)
        names = "".join(f", with {part.get_filename()}" for part in message.iter_attachments())
        about = f"to {message['To']}: {message['Subject']}{names}"
        lines += [f"  {printable(about)}", f"  {page}mail/{file.stem}"]
    if lines:
        console.print("Mails", style="bold", markup=False, highlight=False)
        console.print("\n".join(["", *lines, ""]), markup=False, highlight=False, soft_wrap=True)
