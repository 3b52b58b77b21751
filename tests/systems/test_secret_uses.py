"""Uses of secrets that are replaced from time to time: which process uses which value."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from framework.systems import secret_uses


@pytest.fixture(autouse=True)
def _alone(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests of this process share what it has noted.
    monkeypatch.setattr(secret_uses, "_own", secret_uses._Own())


def used(name: str) -> set[str]:
    return {use.digest for use in secret_uses.uses() if use.secret == name}


def test_a_process_uses_the_value_that_it_has_looked_up_last() -> None:
    secret_uses.note({"user": "one", "password": "p1"})
    assert used("password") == {secret_uses.of_value("password", "p1")}
    secret_uses.note({"user": "two", "password": "p2"})
    assert used("password") == {secret_uses.of_value("password", "p2")}
    (path,) = Path(".sluice/keys").iterdir()
    assert not {"one", "p1", "p2"} & set(path.read_text().split('"'))


def test_work_under_way_goes_on_with_the_value_that_it_began_with() -> None:
    secret_uses.note({"password": "p1"})
    with secret_uses.at_work():
        secret_uses.note({"password": "p2"})
        with secret_uses.at_work():
            secret_uses.note({"password": "p3"})
        assert used("password") == {secret_uses.of_value("password", text) for text in ("p1", "p2", "p3")}
    assert used("password") == {secret_uses.of_value("password", "p3")}


def test_threads_lose_no_note_of_each_other() -> None:
    def note(name: str) -> None:
        for number in range(50):
            secret_uses.note({name: str(number)})

    threads = [threading.Thread(target=note, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(used(name) == {secret_uses.of_value(name, "49")} for name in "abcd")


def test_digests_of_two_keys_say_nothing_of_each_other() -> None:
    assert secret_uses.comparable("k1:aa", "k1:bb")
    assert not secret_uses.comparable("k1:aa", "k2:aa") and not secret_uses.comparable("", "k1:aa")
