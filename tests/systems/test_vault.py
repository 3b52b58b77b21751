"""`store: vault` at a real Vault: values, logins, troubles, and keys over time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from framework.base.errors import SecretsAway, SetupError
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import mask_keys, secret_uses, secrets
from framework.systems.keyring import Ring
from framework.systems.secrets import open_key_store, open_store, reveal, vault
from tests.support.commands import Commands
from tests.support.vault import Server, running

pytestmark = [pytest.mark.slow, pytest.mark.long]
CANARY = "canary-of-a-value"
RING = Ring(name="app.key", secrets=("app.key", "app.secret"))
FIRST = {"app.key": "A1", "app.secret": "one"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("vault")) as started:
        yield started


@pytest.fixture
def store(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SecretStore]:
    """A store with further options, at the server, with the token of an administrator."""
    monkeypatch.setenv("VAULT_TOKEN", server.root_token)
    open_store.cache_clear()
    return lambda **options: SecretStore("vault", vault.Options(address=server.url, **options))


@pytest.fixture
def commands() -> Iterator[Commands]:
    with secret_uses.unnoted():  # this process looks at secrets, and is none that works with them
        yield Commands()


def refused(name: str, vault_store: SecretStore) -> SetupError:
    with pytest.raises(SetupError) as error:
        reveal(SecretRef(name), vault_store)
    assert CANARY not in str(error.value)
    assert os.environ.get("VAULT_TOKEN", CANARY) not in str(error.value)
    return error.value


def test_fields_and_whole_secrets_below_a_prefix(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("sluice/prod/kafka", key="K1", secret=CANARY, port=9092)
    server.put("sluice/prod/pii", value="of the mask")
    vault_store = store(prefix="sluice/prod/")
    assert [reveal(SecretRef(name), vault_store) for name in ("kafka.key", "kafka.port", "pii")] == ["K1", "9092", "of the mask"]
    assert "`vault kv patch -mount=secret sluice/prod/kafka user=…`" in refused("kafka.user", vault_store).hint
    assert reveal(SecretRef("pii.value"), vault_store) == "of the mask"
    assert "`vault kv put -mount=secret sluice/prod/none value=…`" in refused("none", vault_store).hint
    server.put("sluice/prod/none", value="now")
    assert reveal(SecretRef("none"), vault_store) == "now", "what was not there is looked up again at once"


def test_a_value_is_looked_up_again_after_a_while_or_a_failure(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("changed", value="one")
    vault_store = store()
    assert reveal(SecretRef("changed"), vault_store) == "one"
    server.put("changed", value="two")
    assert reveal(SecretRef("changed"), vault_store) == "one"
    secrets.forget(vault_store)
    assert reveal(SecretRef("changed"), vault_store) == "two"


def test_a_token_may_do_what_the_hint_allows(
    server: Server, store: Callable[..., SecretStore], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.put("team/pii", value="0123456789abcdef")
    monkeypatch.setenv("HOME", str(tmp_path))
    vault_store = store(prefix="team/")
    monkeypatch.setenv("VAULT_TOKEN", server.token('path "secret/data/other" { capabilities = ["read"] }'))
    error = refused("pii", vault_store)
    assert error.code == "secrets-refused"
    monkeypatch.setenv("VAULT_TOKEN", server.token(error.hint.partition(": ")[2]))
    assert reveal(SecretRef("pii"), vault_store) == "0123456789abcdef"
    ring = Ring(name="pii", secrets=("pii",))
    with pytest.raises(SetupError, match="create") as refusal:
        open_key_store(vault_store).add_key(ring, 2, {"pii": "another of 16 characters"})
    monkeypatch.setenv("VAULT_TOKEN", server.token(refusal.value.hint.partition(": ")[2]))
    open_key_store(vault_store).add_key(ring, 2, {"pii": "another of 16 characters"})
    monkeypatch.delenv("VAULT_TOKEN")
    secrets.forget(vault_store)
    assert "`export VAULT_TOKEN=…`" in refused("pii", vault_store).hint
    (tmp_path / ".vault-token").write_text(server.token('path "secret/data/team/*" { capabilities = ["read"] }') + "\n")
    assert reveal(SecretRef("pii"), vault_store) == "0123456789abcdef", (
        "a token that an agent writes is read for the next look-up"
    )


def test_an_approle_logs_in_again_when_its_token_has_ended(
    server: Server, store: Callable[..., SecretStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put("app", key="A1")
    server.ask("POST", "sys/auth/approle", {"type": "approle"})
    server.token('path "secret/data/*" { capabilities = ["read"] }')
    server.ask("POST", "auth/approle/role/sluice", {"token_policies": ["of-a-test"]})
    role_id = server.ask("GET", "auth/approle/role/sluice/role-id")["data"]["role_id"]
    vault_store = store(role_id=role_id)
    assert "VAULT_SECRET_ID" in refused("app.key", vault_store).hint
    monkeypatch.setenv("VAULT_SECRET_ID", "wrong")
    assert "does not take the AppRole" in refused("app.key", vault_store).message
    monkeypatch.setenv("VAULT_SECRET_ID", server.ask("POST", "auth/approle/role/sluice/secret-id")["data"]["secret_id"])
    assert reveal(SecretRef("app.key"), vault_store) == "A1"
    monkeypatch.setenv("VAULT_SECRET_ID", "wrong")
    secrets.forget(vault_store)
    assert reveal(SecretRef("app.key"), vault_store) == "A1", "the token is used until it ends"
    monkeypatch.setenv("VAULT_SECRET_ID", server.ask("POST", "auth/approle/role/sluice/secret-id")["data"]["secret_id"] + "\n")
    server.ask("PUT", "sys/leases/revoke-prefix/auth/approle")
    secrets.forget(vault_store)
    assert reveal(SecretRef("app.key"), vault_store) == "A1"


def test_while_it_is_sealed_the_last_values_are_used(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("app", key="A1")
    vault_store = store()
    assert reveal(SecretRef("app.key"), vault_store) == "A1"
    server.ask("PUT", "sys/seal")
    try:
        secrets.forget(vault_store)
        assert reveal(SecretRef("app.key"), vault_store) == "A1"
        with pytest.raises(SecretsAway, match="is sealed"):
            reveal(SecretRef("never.seen"), store(prefix="other/"))
    finally:
        server.ask("PUT", "sys/unseal", {"key": server.unseal_key})


def test_what_is_no_engine_of_version_2_and_what_does_not_answer(server: Server, store: Callable[..., SecretStore]) -> None:
    server.ask("POST", "sys/mounts/old", {"type": "kv", "options": {"version": "1"}})
    server.ask("POST", "old/data/app", {"key": "A1"})
    assert "`mount`" in refused("app.key", store(mount="old")).hint
    with pytest.raises(SetupError, match="no engine KV of version 2"):
        open_key_store(store(mount="old")).add_key(Ring(name="new", secrets=("new",)), 1, {"new": "one"})
    assert "is no path" in refused("x/../../other.key", store()).message
    assert "`mount`" in refused("app.key", store(mount="none")).hint or "kv put" in refused("app.key", store(mount="none")).hint
    with pytest.raises(SecretsAway):
        reveal(SecretRef("app.key"), SecretStore("vault", vault.Options(address="http://127.0.0.1:1")))


def test_keys_are_fields_of_the_secret_and_others_stay(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("app", key="A1", secret="one", port=9092, note=" as it is ", more={"a": 1})
    key_store = open_key_store(store())
    key_store.add_key(RING, 2, {"app.key": "A2", "app.secret": "two"})
    assert [(key.number, key.state) for key in key_store.keys(RING)] == [(1, "current"), (2, "next")]
    key_store.use_key(RING, 2)
    fields = server.fields("app")
    assert (fields["key"], fields["secret"]) == ("A2", "two")
    assert (fields["port"], fields["note"], fields["more"]) == (9092, " as it is ", {"a": 1})
    assert reveal(SecretRef("app.secret"), store()) == "two"
    key_store.use_key(RING, 1)
    assert server.fields("app")["secret"] == "one"
    key_store.remove_key(RING, 2)
    assert [(key.number, key.state, key.values) for key in key_store.keys(RING)] == [(1, "current", FIRST)]
    with pytest.raises(SetupError, match="cannot change at once") as error:
        key_store.keys(Ring(name="kafka_key", secrets=("kafka_key", "kafka_secret")))
    assert "`${secret:kafka.key}`" in error.value.hint


def test_a_secret_that_was_deleted_takes_keys_again(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("gone", key="A1")
    server.ask("DELETE", "secret/data/gone")
    assert "`vault kv put -mount=secret gone key=…`" in refused("gone.key", store()).hint
    key_store, ring = open_key_store(store()), Ring(name="gone.key", secrets=("gone.key",))
    key_store.add_key(ring, 1, {"gone.key": "A2"})
    key_store.use_key(ring, 1)
    assert reveal(SecretRef("gone.key"), store()) == "A2"


def test_no_machine_replaces_a_key_that_another_one_has_just_added(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("app", key="A1", secret="one")
    key_store = open_key_store(store())
    key_store.add_key(RING, 2, {"app.key": "A2", "app.secret": "two"})
    with pytest.raises(SetupError, match="another machine"):
        key_store.add_key(RING, 2, {"app.key": "B2", "app.secret": "of the other"})
    key_store.use_key(RING, 2)
    assert server.fields("app")["secret"] == "two"
    key_store.remove_key(RING, 1)
    with pytest.raises(SetupError, match="any more"):
        key_store.use_key(RING, 1)


def test_a_value_that_is_a_number_is_a_key_like_others(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("digits", value=1234567890123456)
    key_store, ring = open_key_store(store()), Ring(name="digits", secrets=("digits",))
    key_store.add_key(ring, 2, {"digits": "another of 16 characters"})
    key_store.use_key(ring, 2)
    assert [(key.number, key.values["digits"]) for key in key_store.keys(ring)] == [
        (1, "1234567890123456"), (2, "another of 16 characters")
    ]  # fmt: skip


def test_values_of_several_lines_and_spaces_around_them(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("long", **{"key": " -----BEGIN=\nabc=\n-----END\n", "key=x": "other"})
    key_store, ring = open_key_store(store()), Ring(name="long.key", secrets=("long.key",))
    assert reveal(SecretRef("long.key"), store()) == "-----BEGIN=\nabc=\n-----END"
    key_store.add_key(ring, 2, {"long.key": "two\nlines"})
    assert [(key.number, key.state) for key in key_store.keys(ring)] == [(1, "current"), (2, "next")]
    key_store.use_key(ring, 2)
    assert [(key.number, key.state) for key in key_store.keys(ring)] == [(1, "former"), (2, "current")]
    assert (server.fields("long")["key"], server.fields("long")["key=x"]) == ("two\nlines", "other")


def test_two_who_change_one_secret_lose_nothing_of_each_other(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("shared", a="0", b="0")
    errors: list[Exception] = []

    def work(name: str) -> None:
        ring = Ring(name=f"shared.{name}", secrets=(f"shared.{name}",))
        try:
            for number in range(2, 12):
                again(partial(key_store.add_key, ring, number, {ring.name: str(number)}))
                again(partial(key_store.use_key, ring, number))
        except Exception as error:
            errors.append(error)

    key_store = open_key_store(store())
    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    fields = server.fields("shared")
    assert (fields["a"], fields["b"], len(fields)) == ("11", "11", 2 + 2 * 11)


def again(change: Callable[[], object]) -> None:
    """Does a change that others came before too often once more, as a rotation would."""
    for _ in range(20):
        try:
            change()
        except SecretsAway:
            continue
        return


def test_the_keys_of_a_mask(server: Server, store: Callable[..., SecretStore]) -> None:
    server.put("mask", value="0123456789abcdef")
    vault_store, ring = store(), Ring(name="mask", secrets=("mask",))
    assert mask_keys.ring("mask", vault_store).suffixes == ("",)
    assert mask_keys.ring("mask.value", vault_store).values == ("0123456789abcdef",)
    open_key_store(vault_store).add_key(ring, 2, {"mask": "another of 16 characters"})
    open_key_store(vault_store).use_key(ring, 2)
    mask_ring = mask_keys.ring("mask", vault_store)
    assert (mask_ring.suffixes, mask_ring.current, mask_ring.values[0]) == (("", "#2"), 1, "0123456789abcdef")
    fields = server.fields("mask")
    server.put("mask", **{**fields, "value@1": {"used": "as Vault's own page stores it"}})
    secrets.forget(vault_store)
    with pytest.raises(SetupError, match="cannot be read"):
        mask_keys.ring("mask", vault_store)


SPECS = """
cluster: main
bootstrap: 127.0.0.1:9092
---
catalog: main
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
---
secrets: main
store: vault
address: {url}
prefix: team/
---
keys: people
of: mask
secret: pii
rotate_every: 365d
---
topic: orders
value: json
columns: {{email: string}}
---
pipeline: orders
from: {{topic: orders}}
steps:
  - mask: {{key: "${{secret:pii}}", columns: {{email: encrypt}}}}
into: {{table: {namespace}.orders}}
"""


def test_the_commands_replace_a_key_and_take_it_back(
    server: Server, store: Callable[..., SecretStore], own_folder: Path, commands: Commands
) -> None:
    server.put("team/pii", value="0123456789abcdef")
    (own_folder / "specs").mkdir()
    (own_folder / "specs" / "orders.yaml").write_text(SPECS.format(url=server.url, namespace="raw"))
    commands.ok("keys", "rotate", "people")
    new_value = server.fields("team/pii")["value"]
    assert new_value != "0123456789abcdef" and "current" in commands.ok("keys", "list")
    commands.ok("keys", "rotate", "people", "--to", "1")
    assert server.fields("team/pii")["value"] == "0123456789abcdef"
    server.ask("PUT", "sys/seal")
    try:
        assert "is sealed" in commands.refused("keys", "new", "people")
    finally:
        server.ask("PUT", "sys/unseal", {"key": server.unseal_key})
