"""Kafka's users that log in by SCRAM: made by an administrator with the rights of another user, and deleted with their rights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from framework.base.errors import SluiceError
from framework.base.patience import KAFKA
from framework.core.kafka.cluster import LoginWatch, unreachable
from framework.plan import Cluster

_ITERATIONS = 8192
_PAUSE = 0.25  # seconds between two tries to log in
_KNOWN_EVERYWHERE = 15.0  # seconds within which all brokers know a new user
_RIGHT = (
    "give the login of an administrator, with the rights ALTER and DESCRIBE on the cluster: "
    '`admin: {username: admin, password: "${secret:admin_secret}"}` in the document `keys`'
)
_BY_HAND = "make a user like it, and hand over its name and password by `sluice keys new NAME --by-hand`"


class Users:
    """The users of one cluster, with the login of an administrator."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any]) -> None:
        self.cluster = cluster
        quiet_settings: dict[str, Any] = {**settings, "log_level": 0, "error_cb": lambda _: None}
        self._admin = AdminClient(quiet_settings)

    def require_right(self) -> None:
        """Raises an error if the login may not make and delete users. It is asked for beforehand: confluent-kafka 2.16.1 corrupts its
        memory where users are described and an answer is an error."""
        answer = self._asked(
            self._admin.describe_cluster(include_authorized_operations=True, request_timeout=KAFKA).result
        ).authorized_operations
        if not {AclOperation.ALTER, AclOperation.DESCRIBE} <= set(answer or ()):
            raise self._refused()

    def names(self) -> frozenset[str]:
        """The users that log in by SCRAM. All are asked for, since a name that is missing is an error."""
        self.require_right()
        answer: Any = self._admin.describe_user_scram_credentials(request_timeout=KAFKA)
        return frozenset(self._asked(answer.result))

    def make(self, user: str, password: str, like: str | None) -> None:
        """Makes a user, or gives it this password, and the rights of the user that it is `like`. A second time changes nothing."""
        self.require_right()
        credential = ScramCredentialInfo(_mechanism(self.cluster), _ITERATIONS)
        self._alter([UserScramCredentialUpsertion(user, credential, password.encode())])
        bindings = self._rights(like) if like and like != user else ()
        if bindings == [] and like:
            message = f"Kafka at {self.cluster.bootstrap} has no ACLs of the user {like}: its rights come from elsewhere"
            raise SluiceError("kafka-refused", message, _BY_HAND)
        copies = [_with_principal(binding, f"User:{user}") for binding in bindings or ()]
        if copies:
            for answer in self._asked(lambda: self._admin.create_acls(copies, request_timeout=KAFKA)).values():
                self._asked(answer.result)

    def delete(self, user: str) -> None:
        """Deletes a user and its rights, or what is left of them."""
        self.require_right()
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            self._alter([UserScramCredentialDeletion(user, mechanism)])
        filters = [of_user(f"User:{user}")]
        if self._rights(user):
            for answer in self._asked(lambda: self._admin.delete_acls(filters, request_timeout=KAFKA)).values():
                self._asked(answer.result)

    def _alter(self, alterations: list[Any]) -> None:
        for answer in self._asked(lambda: self._admin.alter_user_scram_credentials(alterations, request_timeout=KAFKA)).values():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.RESOURCE_NOT_FOUND:  # it was deleted already
                    raise self._failed(error) from None

    def _rights(self, user: str) -> list[AclBinding] | None:
        """The rights of a user; None where the cluster restricts nobody."""
        try:
            return list(self._admin.describe_acls(of_user(f"User:{user}"), request_timeout=KAFKA).result())
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                return None
            raise self._failed(error) from None

    def _asked(self, question: Any) -> Any:
        try:
            return question()
        except KafkaException as error:
            raise self._failed(error) from None

    def _failed(self, error: KafkaException) -> SluiceError:
        if error.args[0].name().endswith("AUTHORIZATION_FAILED"):  # its text is a whole request
            return self._refused()
        return unreachable(self.cluster, error.args[0])

    def _refused(self) -> SluiceError:
        message = f"Kafka at {self.cluster.bootstrap} does not let the login make and delete users"
        return SluiceError("kafka-refused", message, _RIGHT)


def wait_for_login(cluster: Cluster, settings: Mapping[str, Any]) -> None:
    """Logs in, as soon as the brokers know the user. Raises an error if they do not."""
    deadline = time.monotonic() + _KNOWN_EVERYWHERE
    while True:
        watch = LoginWatch()
        admin = AdminClient({**settings, **watch.settings})
        try:
            admin.list_topics(timeout=_KNOWN_EVERYWHERE / 3)
            return
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise watch.unreachable(cluster, admin, error) from None
        time.sleep(_PAUSE)


def _mechanism(cluster: Cluster) -> Any:
    return ScramMechanism[(cluster.security.mechanism or "").replace("-", "_")]


def of_user(principal: str) -> AclBindingFilter:
    any_filter: Any = AclBindingFilter  # its stubs know no None
    filter_: AclBindingFilter = any_filter(
        ResourceType.ANY, None, ResourcePatternType.ANY, principal, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return filter_


def _with_principal(binding: AclBinding, principal: str) -> AclBinding:
    return AclBinding(
        binding.restype, binding.name, binding.resource_pattern_type, principal, binding.host, binding.operation,
        binding.permission_type,
    )  # fmt: skip
