"""Types of keys without an API of their own: API keys made by hand, readers of `sluice serve`, a Snowflake user's pair."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from sqlglot import parse_one

from framework.host.serve import server
from framework.host.serve.clients import KeyClients
from framework.operations.keys.due import replace_due
from framework.plan import Plan, SecretRef
from framework.systems import secret_uses
from framework.systems.secrets import reveal
from tests.support.commands import Commands
from tests.support.key_specs import write
from tests.support.proxy import Request, between
from tests.support.served_tables import LOCAL, fill
from tests.support.spec_parts import ORDERS

pytestmark = pytest.mark.slow
SNOWFLAKE = "keys: loader\nof: snowflake_user\nsecret: snowflake\nuser: SLUICE_LOADER\nrotate_every: 30d\n"
READERS = "---\nkeys: readers\nof: serve\nsecret: readers\nclient: reader\n"
REGISTRY = """cluster: main
bootstrap: 127.0.0.1:1
registry: {url}
registry_auth: {{username: "${{secret:registry.key}}", password: "${{secret:registry.secret}}"}}
---
keys: registry_login
of: registry
secret: registry
"""
API_KEY = """cluster: main
bootstrap: 127.0.0.1:1
security: {protocol: SASL_SSL, mechanism: PLAIN, username: "${secret:kafka_key}", password: "${secret:kafka_secret}"}
---
keys: kafka_login
of: kafka
secret: kafka
"""


@pytest.fixture
def commands(own_folder: Path) -> Iterator[Commands]:
    with secret_uses.unnoted():  # this process looks at secrets, and is none that works with them
        yield Commands()


class TestByHand:
    """A key that a person makes elsewhere."""

    def test_how_one_is_made_is_told(self, commands: Commands) -> None:
        write(API_KEY, {"kafka_key": "K1", "kafka_secret": "one"})
        message = commands.refused("keys", "new", "kafka_login")
        assert "made-by-hand" in message and "`confluent api-key create --resource <cluster>" in message
        assert "`sluice keys new kafka_login --by-hand`" in message
        assert "kafka-unreachable" in commands.refused("keys", "new", "kafka_login", "--by-hand", given=b"K2\ntwo\n")

    def test_a_key_of_a_registry_is_tried_before_it_is_used(self, commands: Commands, registry: str) -> None:
        valid_logins = {_basic("R1", "one"), _basic("R2", "two")}

        def refuses(request: Request) -> bool:
            if request.headers.get("Authorization") in valid_logins:
                return False
            request.answer(401, b'{"error_code": 401, "message": "who are you?"}')
            proxy.faults.append(refuses)
            return True

        with between(registry) as proxy:
            proxy.faults.append(refuses)
            plan = write(REGISTRY.format(url=proxy.url), {"registry.key": "R1", "registry.secret": "one"})
            assert "registry-refused" in commands.refused("keys", "new", "registry_login", "--by-hand", given=b"R2\nwrong\n")
            output = commands.ok("keys", "new", "registry_login", "--by-hand", given=b"R2\ntwo\n")
            assert "key 2 is made, R2" in output and "two" not in output
            message = commands.refused("keys", "new", "registry_login", "--by-hand", given=b"R3\nthree\n")
            assert "next-key-waits" in message
            commands.ok("keys", "rotate", "registry_login")
            assert reveal(SecretRef("registry.key"), plan.secrets) == "R2"
            assert "left to you:\n  delete the key R1" in commands.ok("keys", "retire", "registry_login")


class TestReaders:
    """The server takes each key that is valid, and notices new ones while it runs."""

    def test_old_and_new_readers_log_in_until_a_key_is_retired(self, commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
        # A look counts for seconds; here each request looks.
        monkeypatch.setattr(KeyClients, "__call__", lambda clients, _, look=KeyClients.__call__: look(clients, 0.0))
        plan = write(ORDERS.format(catalog=LOCAL) + READERS, {})
        fill(plan)
        assert "no-key" in commands.refused("serve")
        commands.ok("keys", "rotate", "readers")
        first_login = _clients(plan)
        with server.running(plan, plan.catalogs[0], 0, KeyClients(plan)) as address:
            assert _status(address, *first_login) == 200
            assert _status(address, first_login[0], "wrong") == 401
            commands.ok("keys", "rotate", "readers")
            second_login = _clients(plan)
            assert second_login[0] == "reader-2" and second_login != first_login
            assert (_status(address, *first_login), _status(address, *second_login)) == (200, 200)
            assert _status(address, first_login[0], second_login[1]) == 401, "one client's secret is not another's"
            Path(".sluice/secrets").chmod(0o644)
            assert _status(address, *first_login) == 200, "while nobody can say which keys there are, the former ones count"
            Path(".sluice/secrets").chmod(0o600)
            token = _token(address, *first_login)
            assert _tables(address, token) == 200
            commands.ok("keys", "retire", "readers", "1")
            assert _tables(address, token) == 401, "a token ends with its client"
            assert (_status(address, *first_login), _status(address, *second_login)) == (401, 200)


class TestSnowflakeUser:
    """A pair of keys in the two slots of a user by turns."""

    def test_both_slots_by_turns_with_the_sql_for_each_step(self, commands: Commands) -> None:
        plan = write(SNOWFLAKE, {})
        output = commands.ok("keys", "rotate", "loader")
        assert "key 1 is made, SHA256:" in output and "is used" not in output, "somebody has to give it to Snowflake first"
        assert "left to you:\n  ALTER USER SLUICE_LOADER SET RSA_PUBLIC_KEY = '" in output
        assert not replace_due(plan).lines, "nor is it used when it is due"
        assert "a new key waits to be used" in commands.refused("keys", "status")
        assert "`sluice keys rotate loader --placed` then uses it" in commands.refused("keys", "status")
        assert commands.ok("keys", "rotate", "loader") == output, "as long as nobody says that it is there"
        commands.ok("keys", "rotate", "loader", "--placed")
        fingerprint = _fingerprint(reveal(SecretRef("snowflake"), plan.secrets))
        assert fingerprint in output
        alter, describe, select = (line.strip() for line in output.partition("left to you:\n")[2].splitlines())
        assert re.fullmatch(r"ALTER USER SLUICE_LOADER SET RSA_PUBLIC_KEY = '[A-Za-z0-9+/=]{390,}';", alter)
        assert describe == "DESCRIBE USER SLUICE_LOADER;"
        parse_one(select.rstrip(";"), dialect="snowflake")

        output = commands.ok("keys", "new", "loader")
        assert "SET RSA_PUBLIC_KEY_2 = '" in output and "\"property\" = 'RSA_PUBLIC_KEY_2_FP'" in output
        assert reveal(SecretRef("snowflake"), plan.secrets) and fingerprint not in output
        commands.ok("keys", "rotate", "loader", "--placed")
        assert _fingerprint(reveal(SecretRef("snowflake"), plan.secrets)) in output
        assert "too-many-keys" in commands.refused("keys", "new", "loader")
        assert "ALTER USER SLUICE_LOADER UNSET RSA_PUBLIC_KEY;" in commands.ok("keys", "retire", "loader")
        assert "SET RSA_PUBLIC_KEY = '" in commands.ok("keys", "new", "loader"), "the slot that is free"

    def test_a_key_that_is_none_and_one_that_was_there_before(self, commands: Commands) -> None:
        plan = write(SNOWFLAKE + "slot: 2\n", {"snowflake": "-----BEGIN PRIVATE KEY-----"})
        assert "current, a key that cannot be read" in commands.ok("keys", "list")
        assert "bad-key" in commands.refused("keys", "new", "loader", "--by-hand", given=b"no key\n")
        output = commands.ok("keys", "new", "loader")
        assert "key 2 is made" in output and "SET RSA_PUBLIC_KEY = '" in output, "the first one is in slot 2"
        commands.ok("keys", "rotate", "loader", "--placed")
        assert "UNSET RSA_PUBLIC_KEY_2;" in commands.ok("keys", "retire", "loader")
        assert _fingerprint(reveal(SecretRef("snowflake"), plan.secrets)) in output


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _clients(plan: Plan) -> tuple[str, str]:
    key, secret = (reveal(SecretRef(name), plan.secrets) for name in ("readers_key", "readers_secret"))
    return key, secret


def _status(address: str, client: str, secret: str) -> int:
    return _login(address, client, secret).status_code


def _login(address: str, client: str, secret: str) -> requests.Response:
    body = f"grant_type=client_credentials&client_id={quote(client)}&client_secret={quote(secret)}"
    return requests.post(f"{address}/v1/oauth/tokens", data=body, timeout=10)


def _token(address: str, client: str, secret: str) -> str:
    return str(_login(address, client, secret).json()["access_token"])


def _tables(address: str, token: str) -> int:
    return requests.get(f"{address}/v1/namespaces", headers={"Authorization": f"Bearer {token}"}, timeout=10).status_code


def _fingerprint(private_key: str) -> str:
    """The fingerprint of a private key as Snowflake's documentation computes it, by openssl."""
    pem = f"-----BEGIN PRIVATE KEY-----\n{private_key}\n-----END PRIVATE KEY-----\n".encode()
    public = subprocess.run(["openssl", "rsa", "-pubout", "-outform", "DER"], input=pem, capture_output=True, check=True).stdout
    digest = subprocess.run(["openssl", "dgst", "-sha256", "-binary"], input=public, capture_output=True, check=True).stdout
    return f"SHA256:{base64.b64encode(digest).decode()}"
