"""Makes, uses and retires the keys of one document.

*Guarantee* A key is used only after it was tried, and the step before can be taken again until a key is retired. Whoever is killed leaves
keys that the same step, once more, brings to their end. One process of this machine at a time changes the keys of a document.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from framework.base.errors import KafkaAway, RegistryAway, SecretsAway, SluiceError
from framework.base.home import private, turn
from framework.features.key_types import KeyWork
from framework.operations.keys.standing import due, ring_of, type_of, users
from framework.plan import Plan
from framework.plan.keys import Keys
from framework.systems import keyring, secret_uses, secrets
from framework.systems.keyring import StoredKey
from framework.systems.secrets import open_key_store

_PATIENCE = 60.0  # seconds for another process that changes the same keys


@dataclass(frozen=True)
class Step:
    """One step that was done, in words, and what is left to a person, as lines to run elsewhere. `lasts`: it could not be done, and is
    tried again each time."""

    says: str
    left: Sequence[str] = field(default=())
    lasts: bool = False


class Rotation:
    """The steps for the keys of one document of a plan."""

    def __init__(self, plan: Plan, keys: Keys) -> None:
        self.plan = plan
        self.keys = keys
        self._type = type_of(keys)
        self._store = open_key_store(plan.secrets)
        self._ring = ring_of(keys)
        self._work = KeyWork(keys=keys, secrets=plan.secrets)

    def new(self, given: Mapping[str, str] | None = None) -> Step:
        """Makes the next key, or takes the values that a person made. Nobody uses it yet. If there is a next key, its making is ended."""
        with self._turn():
            return self._new(given)

    def rotate(self, to: int | None = None, placed: bool = False) -> list[Step]:
        """Uses the next key, which is made if there is none, or the key `to`; and retires what is more than `retain` former ones.
        A key that a person has to put in its place is used only if it was `placed`; else it is said again where it belongs."""
        with self._turn():
            return self._rotate(to, placed)

    def rotate_due(self) -> list[Step]:
        """Replaces the key if it is due, and retires what nobody uses any longer. It leaves alone what waits for a person, and does
        not return to a key that a person has taken back."""
        with self._turn():
            stored = self.stored()
            moment = due(self.keys, keyring.current(stored))
            is_waiting = self._type.needs_person and keyring.following(stored) is not None
            if moment is not None and moment <= time.time() and not is_waiting and not keyring.is_taken_back(stored):
                return self._rotate(None, placed=False)
            return [] if self._type.by_hand(self.keys) or self._type.needs_person else self._retire_surplus(stored)

    def retire(self, number: int | None, also_used: bool = False) -> Step:
        """Makes a former key, or the next one, invalid and forgets it. One that is used stays, unless `also_used`."""
        with self._turn():
            stored = self.stored()
            return self._retire(self._key(stored, number, "former", "next"), stored, also_used)

    def stored(self) -> tuple[StoredKey, ...]:
        return self._store.keys(self._ring)

    def _new(self, given: Mapping[str, str] | None) -> Step:
        stored = self.stored()
        key = keyring.following(stored)
        if key is not None and given is not None:
            message = f"key {key.number} of {self.keys.name} waits to be used already"
            raise SluiceError("next-key-waits", message, f"`sluice keys rotate {self.keys.name}` uses it, `sluice keys retire "
                              f"{self.keys.name} {key.number}` forgets it")  # fmt: skip
        is_new = key is None
        if key is None:
            key = self._added(stored, given)
        left = () if key.by_hand else self._put(key, stored, is_new)
        is_current = any(each.number == key.number and each.state == "current" for each in self.stored())
        use = "it is the first one, and used at once" if is_current else "nothing uses it yet"
        return Step(f"key {key.number} is made, {self._type.known_as(key.values)}; {use}", left)

    def _put(self, key: StoredKey, stored: tuple[StoredKey, ...], is_new: bool) -> Sequence[str]:
        """Makes a key valid and tries it; one that is refused and was not there before is no key any longer."""
        assert key.number is not None
        try:
            left = self._type.put(self._work, key.number, key.values, stored)
            if not left:
                self._type.check(self._work, key.values)
        except (KafkaAway, RegistryAway, SecretsAway):  # it may be there already
            raise
        except SluiceError:
            if is_new:
                self._withdraw(key, stored)
            raise
        return left

    def _added(self, stored: tuple[StoredKey, ...], given: Mapping[str, str] | None) -> StoredKey:
        """A key that the store has from now on. What a person made is tried before."""
        self._need_slot(stored)
        number = keyring.next_number(stored)
        values = given or self._type.make(self._work, number, stored)
        if given:
            self._type.check(self._work, given)
            name = self._type.known_as(given)
            if any(self._type.known_as(key.values) == name for key in stored):
                hint = "make another one; a new password of the same name ends the former one at once"
                raise SluiceError("same-key", f"{name} is a key of {self.keys.name} already", hint)
        try:
            self._store.add_key(self._ring, number, values, by_hand=given is not None)
        except SluiceError:
            if not given:  # nobody has it: a system that has made it already takes it back
                with suppress(SluiceError):
                    self._type.remove(self._work, number, values, stored)
            raise
        return StoredKey(number=number, state="next", created=None, by_hand=given is not None, values=values)

    def _withdraw(self, key: StoredKey, stored: tuple[StoredKey, ...]) -> None:
        """Takes back a new key that was refused, as far as its system lets us: what stays there is made again by the same number."""
        assert key.number is not None
        with suppress(SluiceError):
            if keyring.acting(stored):
                self._type.remove(self._work, key.number, key.values, stored)
            self._store.remove_key(self._ring, key.number)

    def _rotate(self, to: int | None, placed: bool) -> list[Step]:
        stored = self.stored()
        waited = keyring.following(stored) is not None
        makes_one = to is None and not waited and not self._type.needs_person and not self._type.by_hand(self.keys)
        steps = [self._retire(oldest, stored, also_used=False)] if makes_one and (oldest := self._oldest(stored)) else []
        if to is None and not (waited and placed):
            new_step = self._new(None)
            steps += [] if waited and not new_step.left else [new_step]
            if new_step.left:
                return steps
        stored = self.stored()
        # A store's first key may be the current one from the beginning.
        waiting = keyring.following(stored) or keyring.current(stored)
        key = waiting if to is None else self._key(stored, to, "next", "former", "current")
        assert key is not None and key.number is not None
        self._type.check(self._work, key.values)
        if key.state != "current":
            self._store.use_key(self._ring, key.number)
        secrets.forget(self.plan.secrets)
        steps.append(Step(f"key {key.number} is used from the next login on, {self._type.known_as(key.values)}"))
        return steps if to is not None else [*steps, *self._retire_surplus(self.stored())]

    def _retire_surplus(self, stored: tuple[StoredKey, ...]) -> list[Step]:
        """Retires former keys beyond those that are retained, unless somebody uses them."""
        if self._type.keeps_former:
            return []
        steps = []
        for key in keyring.former(stored)[self.keys.retain :]:
            try:
                steps.append(self._retire(key, stored, also_used=False))
            except SluiceError as error:
                steps.append(Step(f"key {key.number} stays: {error.message}", lasts=True))
        return steps

    def _retire(self, key: StoredKey, stored: tuple[StoredKey, ...], also_used: bool) -> Step:
        assert key.number is not None
        name, used_by = self._type.known_as(key.values), users(self.keys, key, tuple(secret_uses.uses()))
        if used_by and not also_used:
            hint = "it looks up the new one at its next login; `--yes` retires the key nevertheless"
            raise SluiceError("key-used", f"key {key.number} of {self.keys.name} is used by {', '.join(used_by)}", hint)
        needs = self._type.needed_for(self._work, key, stored)
        if needs and not also_used:
            message = f"without key {key.number} of {self.keys.name} {', and '.join(needs)}"
            raise SluiceError("key-needed", message, "leave it; `--yes` retires the key nevertheless")
        others = [other for other in stored if other is not key and self._type.known_as(other.values) == name]
        if key.by_hand and not self._type.by_hand(self.keys) and not self._type.keeps_former:
            left: Sequence[str] = (f"make {name} invalid where you made it",)
        else:
            left = () if others else self._type.remove(self._work, key.number, key.values, stored)
        self._store.remove_key(self._ring, key.number)
        return Step(f"key {key.number} is retired, {name}", left)

    def _key(self, stored: tuple[StoredKey, ...], number: int | None, *states: keyring.State) -> StoredKey:
        """The key of a number that is in one of these states; without a number, the only one."""
        fitting = [key for key in stored if key.state in states and number in (None, key.number)]
        if len(fitting) == 1:
            return fitting[0]
        name, current = self.keys.name, keyring.current(stored)
        if number is not None and current and current.number == number:
            hint = f"use another one first: `sluice keys rotate {name}`, or `--to` a former one"
            raise SluiceError("key-used", f"key {number} of {name} is the current one", hint)
        others = ", ".join(str(key.number) for key in stored if key.state in states) or "none"
        what = f"no key {number}" if number is not None else "no former key" if not fitting else "more than one key"
        raise SluiceError("unknown-key-number", f"{name} has {what} that could be taken", f"there are: {others}")

    def _need_slot(self, stored: tuple[StoredKey, ...]) -> None:
        if oldest := self._oldest(stored):
            message = f"`{self.keys.type}` has {len(stored)} keys at a time, and both are taken"
            raise SluiceError("too-many-keys", message, f"`sluice keys retire {self.keys.name} {oldest.number}` frees one")

    def _oldest(self, stored: tuple[StoredKey, ...]) -> StoredKey | None:
        """The former key that has to go before another one can be made."""
        slots, former = self._type.slots(self.keys), keyring.former(stored)
        return former[-1] if slots and len(stored) >= slots and former else None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with turn(private("keys") / f"{self.plan.environment}.{self.keys.name}.lock", _PATIENCE) as is_mine:
            if not is_mine:
                hint = "`sluice keys list` shows them; try again"
                raise SluiceError("keys-busy", f"another process changes the keys of {self.keys.name}", hint)
            yield
