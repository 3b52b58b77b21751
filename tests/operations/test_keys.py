"""Keys over time, by the example of a login to Kafka: each step, taken back and cut short."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.core.kafka.cluster import Kafka
from framework.features.key_types import kafka as kafka_type
from framework.operations.keys.due import replace_due
from framework.operations.keys.rotation import Rotation
from framework.plan import Plan, SecretRef
from framework.systems import keyring, secret_uses
from framework.systems.keyring import StoredKey
from framework.systems.secrets import reveal
from framework.systems.secrets.file import File
from tests.support.commands import Commands
from tests.support.key_specs import write
from tests.support.scram_kafka import ScramKafka, scram_kafka

pytestmark = pytest.mark.slow
CLUSTER = """cluster: main
bootstrap: {address}
security: {{protocol: SASL_PLAINTEXT, mechanism: {mechanism}, username: "${{secret:kafka_key}}", password: "${{secret:kafka_secret}}"}}
---
keys: kafka_login
of: kafka
secret: kafka
rotate_every: 30d
"""
ADMIN = 'admin: {username: boss, password: "${secret:boss}"}\n'
FIRST = {"kafka_key": "ingest", "kafka_secret": "the first password"}


class Died(BaseException):
    """The process died here."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScramKafka]:
    with scram_kafka(tmp_path_factory.mktemp("locked") / "kafka") as running:
        yield running


@pytest.fixture
def commands(own_folder: Path) -> Iterator[Commands]:
    with secret_uses.unnoted():  # this process looks at secrets, and is none that works with them
        yield Commands()


def keys_of(plan: Plan) -> list[StoredKey]:
    (document,) = plan.documents_of("keys")
    return list(Rotation(plan, document.value).stored())


def rotation_of(plan: Plan) -> Rotation:
    (document,) = plan.documents_of("keys")
    return Rotation(plan, document.value)


def states(plan: Plan) -> dict[int | None, str]:
    return {key.number: key.state for key in keys_of(plan)}


def logs_in(plan: Plan) -> bool:
    return bool(Kafka(plan.clusters[0], plan.secrets, 5).cluster_id())


@pytest.mark.kafka
class TestScram:
    """Each key is a user of Kafka."""

    def plan(self, locked: ScramKafka, more: str = "", manages: bool = True) -> Plan:
        for user in locked.users():
            locked.delete_user(user)
        locked.add_user(FIRST["kafka_key"], FIRST["kafka_secret"], manages)
        return write(CLUSTER.format(address=locked.locked, mechanism="SCRAM-SHA-256") + more, FIRST)

    def test_a_new_user_has_the_rights_of_the_one_before_and_each_step_can_be_taken_back(
        self, commands: Commands, locked: ScramKafka
    ) -> None:
        plan = self.plan(locked)
        assert "no number yet: current, ingest, of unknown age" in commands.ok("keys", "list")
        assert "key 2 is made, ingest-2; nothing uses it yet" in commands.ok("keys", "new", "kafka_login")
        assert reveal(SecretRef("kafka_key"), plan.secrets) == "ingest"
        assert "key 2 is made" in commands.ok("keys", "new", "kafka_login"), "a second time it is the same key"
        assert "key 2 is retired" in commands.ok("keys", "retire", "kafka_login"), "the only one that can be"
        assert locked.users() == {"ingest"}

        assert commands.ok("keys", "rotate", "kafka_login").splitlines() == [
            "kafka_login: key 2 is made, ingest-2; nothing uses it yet",
            "kafka_login: key 2 is used from the next login on, ingest-2",
        ]
        assert reveal(SecretRef("kafka_key"), plan.secrets) == "ingest-2" and logs_in(plan)
        assert locked.rights("ingest-2") == locked.rights("ingest") != set()
        assert "key 1 is used from the next login on" in commands.ok("keys", "rotate", "kafka_login", "--to", "1")
        assert reveal(SecretRef("kafka_key"), plan.secrets) == "ingest" and states(plan) == {1: "current", 2: "former"}
        assert "key 1 is used" in commands.ok("keys", "rotate", "kafka_login", "--to", "1"), "a second time it is the same"
        assert "key 1 was taken back" in commands.refused("keys", "status")
        assert commands.ok("keys", "rotate", "--due") == "no key is due\n", "nothing undoes what a person took back"

        output = commands.ok("keys", "rotate", "kafka_login")
        assert "key 3 is used" in output and "key 2 is retired, ingest-2" in output, (
            "the former key that was used last is retained"
        )
        assert locked.users() == {"ingest", "ingest-3"} and locked.rights("ingest-2") == set()
        assert logs_in(plan) and states(plan) == {1: "former", 3: "current"}
        text = Path(".sluice/secrets").read_text()
        assert text.startswith("# of the shop\nkafka_key=ingest-3\n") and "other=stays" in text
        assert stat.S_IMODE(Path(".sluice/secrets").stat().st_mode) == 0o600

    def test_no_user_that_is_there_is_taken_for_a_new_one(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        locked.add_user("ingest-2", "of somebody else")
        assert "key 2 is used from the next login on, ingest-3" in commands.ok("keys", "rotate", "kafka_login")
        assert logs_in(plan) and {"ingest", "ingest-2", "ingest-3"} == locked.users()
        given = b"ingest-3\nanother password\n"
        assert "kafka-refused" in commands.refused("keys", "new", "kafka_login", "--by-hand", given=given)
        given = f"ingest-3\n{keys_of(plan)[-1].values['kafka_secret']}\n".encode()
        assert "same-key: ingest-3 is a key" in commands.refused("keys", "new", "kafka_login", "--by-hand", given=given)
        assert "kafka-refused" in commands.refused("keys", "new", "kafka_login", "--by-hand", given=b"ingest-2\nwrong\n")
        assert states(plan) == {1: "former", 2: "current"} and logs_in(plan)
        output = commands.ok("keys", "new", "kafka_login", "--by-hand", given=b"ingest-2\nof somebody else\n")
        assert "key 3 is made, ingest-2" in output
        rights = locked.rights("ingest-2")
        assert "key 3 is used" in commands.ok("keys", "rotate", "kafka_login") and logs_in(plan)
        assert locked.rights("ingest-2") == rights, "what a person has made is used as it is"
        commands.ok("keys", "rotate", "kafka_login", "--to", "2")
        assert "make ingest-2 invalid where you made it" in commands.ok("keys", "retire", "kafka_login", "3")
        assert "ingest-2" in locked.users()

    def test_a_user_whose_rights_come_from_elsewhere_is_not_copied(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        locked.forbid("ingest")
        locked.add_user("boss", "of all users", manages=True)
        path = Path(".sluice/secrets")
        path.write_text(path.read_text() + "boss=of all users\n")
        Path("specs/a.yaml").write_text(Path("specs/a.yaml").read_text() + ADMIN)
        message = commands.refused("keys", "rotate", "kafka_login")
        assert "has no ACLs of the user ingest" in message and "--by-hand" in message
        assert states(plan) == {1: "current"} and locked.users() == {"ingest", "boss"}

    def test_a_user_that_two_keys_have_stays_when_one_is_retired(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        commands.ok("keys", "rotate", "kafka_login")
        locked.set_password("ingest-2", "by hand")
        path = Path(".sluice/secrets")
        password = keys_of(plan)[-1].values["kafka_secret"]
        path.write_text(path.read_text().replace(f"kafka_secret={password}\n", "kafka_secret=by hand\n"))
        assert states(plan) == {1: "former", 2: "former", None: "current"}
        commands.ok("keys", "retire", "kafka_login", "2")
        assert logs_in(plan) and "ingest-2" in locked.users()

    def test_wrong_numbers_and_names(self, commands: Commands, locked: ScramKafka) -> None:
        self.plan(locked)
        commands.ok("keys", "rotate", "kafka_login")
        assert "key-used: key 2 of kafka_login is the current one" in commands.refused("keys", "retire", "kafka_login", "2")
        assert "there are: 1" in commands.refused("keys", "retire", "kafka_login", "7")
        assert "did you mean `kafka_login`?" in commands.refused("keys", "new", "kafka_logni")
        assert commands.run("keys", "rotate").exit_code == 2
        assert commands.run("keys", "rotate", "--due", "--to", "1").exit_code == 2

    def test_a_login_that_may_not_make_users_and_one_that_may(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked, manages=False)
        message = commands.refused("keys", "rotate", "kafka_login")
        assert "kafka-refused" in message and "admin: {username: admin, password:" in message and "Request(" not in message
        assert states(plan) == {None: "current"} and locked.users() == {"ingest"}
        locked.add_user("boss", "of all users", manages=True)
        path = Path(".sluice/secrets")
        path.write_text(path.read_text() + "boss=of all users\n")
        Path("specs/a.yaml").write_text(Path("specs/a.yaml").read_text() + ADMIN)
        assert "key 2 is used" in commands.ok("keys", "rotate", "kafka_login")
        assert logs_in(plan) and locked.users() == {"ingest", "ingest-2", "boss"}

    @pytest.mark.parametrize("dies_behind", [False, True], ids=["before", "behind"])
    @pytest.mark.parametrize("place", ["add_key", "put", "check", "use_key", "remove", "remove_key"])
    def test_a_rotation_that_dies_is_brought_to_its_end_by_the_next_one(
        self, place: str, dies_behind: bool, commands: Commands, locked: ScramKafka, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = self.plan(locked)
        commands.ok("keys", "rotate", "kafka_login")  # so that the next one retires a key
        owner: Any = File if place.endswith("_key") else kafka_type.KafkaLogin
        real: Callable[..., Any] = getattr(owner, place)

        def dying(*arguments: Any, **more: Any) -> Any:
            if dies_behind:
                real(*arguments, **more)
            raise Died

        with monkeypatch.context() as patched:
            # A process that is killed at this point does nothing behind it.
            patched.setattr(owner, place, dying)
            with pytest.raises(Died):
                rotation_of(plan).rotate()
        assert logs_in(plan), "whatever was done, the current key is one that Kafka takes"
        rotation_of(plan).rotate()
        assert logs_in(plan)
        stored = keys_of(plan)
        assert [key.state for key in stored].count("current") == 1 and len(keyring.former(stored)) == 1
        assert keyring.following(stored) is None
        assert locked.users() == {plan_key.values["kafka_key"] for plan_key in stored}

    def test_keys_that_are_due_are_replaced_and_those_in_use_stay(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        assert "due; `sluice keys rotate kafka_login` replaces it" in commands.refused("keys", "status"), "of unknown age"
        assert "key 2 is used" in commands.ok("keys", "rotate", "--due")
        assert commands.ok("keys", "rotate", "--due") == "no key is due\n"
        assert "1 former key is still valid" in commands.ok("keys", "status")
        with using("kafka_secret", keys_of(plan)[0].values["kafka_secret"]) as process:
            output = commands.ok("keys", "rotate", "kafka_login")
            assert f"key 1 stays: key 1 of kafka_login is used by python kafka_secret (process {process})" in output
            assert f"used by python kafka_secret (process {process})" in commands.ok("keys", "list")
            message = commands.refused("keys", "retire", "kafka_login", "1")
            assert f"key-used: key 1 of kafka_login is used by python kafka_secret (process {process})" in message
        assert "key 1 is retired" in commands.ok("keys", "rotate", "--due"), "as soon as nobody uses it"
        assert states(plan) == {2: "former", 3: "current"}

    def test_it_is_due_by_its_age(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        rotation_of(plan).rotate()
        assert not replace_due(plan).lines
        path = Path(".sluice/secrets")
        lines = path.read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("kafka_key@2="))
        entry = json.loads(line.partition("=")[2])
        lines[lines.index(line)] = "kafka_key@2=" + json.dumps({**entry, "created": time.time() - 31 * 86400})
        path.write_text("\n".join(lines))
        assert [line for line in replace_due(plan).lines if "is used" in line] == [
            "kafka_login: key 3 is used from the next login on, ingest-3"
        ]

    def test_a_key_that_was_changed_by_hand_is_the_current_one(self, commands: Commands, locked: ScramKafka) -> None:
        plan = self.plan(locked)
        commands.ok("keys", "rotate", "kafka_login")
        locked.add_user("other", "by hand", manages=True)
        path = Path(".sluice/secrets")
        text = path.read_text().replace("kafka_key=ingest-2\n", "kafka_key=other\n")
        password = keys_of(plan)[-1].values["kafka_secret"]
        path.write_text(text.replace(f"kafka_secret={password}\n", "kafka_secret=by hand\n"))
        assert states(plan) == {1: "former", 2: "former", None: "current"}
        commands.ok("keys", "rotate", "kafka_login")
        assert states(plan)[4] == "current" and states(plan)[3] == "former" and logs_in(plan)
        assert reveal(SecretRef("kafka_key"), plan.secrets) == "other-4"


class using:
    """A process that uses a value of a secret."""

    def __init__(self, name: str, text: str) -> None:
        code = (
            "import sys; from framework.systems import secret_uses; secret_uses.note({sys.argv[1]: sys.argv[2]}); "
            "print('ready', flush=True); sys.stdin.read()"
        )
        sys_argv = [sys.executable, "-c", code, name, text]
        self.process = subprocess.Popen(sys_argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> int:
        assert self.process.stdout is not None and self.process.stdout.readline() == "ready\n"
        return self.process.pid

    def __exit__(self, *_: object) -> None:
        self.process.communicate("")
