"""Every setting: its default, its unit, its meaning.

A value comes from the environment (`CRONQ_LOCK_S=3`), else from the Celery app (`app.conf.cronq_lock_s`),
else from a `cronq up` that runs in this folder, else from the default. `Settings` is frozen, and built once
a process.
"""

import base64
import binascii
import difflib
import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from cronq.errors import SettingsError
from cronq.limits import limits_from

PREFIX = "CRONQ_"
ENV_FILE = Path(".cronq/env")
"""Where a running `cronq up` says how to reach it, for whoever works in the same folder."""
DATABASES = ("sqlite", "postgresql+psycopg", "postgresql")
Network = IPv4Network | IPv6Network
BROKERS = ("redis", "rediss", "sentinel", "amqp", "amqps", "pyamqp")


class Settings(BaseSettings):
    """What this process was told."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=ENV_FILE, frozen=True, extra="ignore")

    broker_url: str | None = Field(
        None, description="redis://, rediss://, sentinel:// or amqp://; unset: the Celery app's own broker"
    )
    redis_url: str = Field(
        "redis://127.0.0.1:6379/0", description="where the lock, live progress and notices live"
    )
    database_url: str = Field(
        "sqlite:///.cronq/cronq.db", description="where everything is decided: sqlite:/// or postgresql://"
    )
    queue_type: Literal["quorum", "classic"] = Field(
        "quorum", description="of queues made on RabbitMQ; `classic` where they exist as such"
    )
    key_prefix: str = Field("cronq:", description="what every Redis key of cronq begins with")
    lock_s: float = Field(2.0, ge=0.3, le=60, description="seconds a silent leader keeps the lock")
    standby_poll_s: float = Field(0.2, ge=0.02, le=10, description="seconds between a standby's looks at it")
    horizon_s: float = Field(60.0, ge=1, le=3600, description="seconds ahead that fire times are planned")
    lease_s: float = Field(15.0, ge=1, le=3600, description="seconds a silent worker keeps its job")
    republish_s: float = Field(
        10.0, ge=1, le=3600, description="seconds a published job may go unclaimed before it is looked for"
    )
    max_crashes: int = Field(
        3, ge=1, le=100, description="times a job may take its worker with it before it is dead"
    )
    max_payload_bytes: int = Field(
        262_144, ge=1024, le=16_777_216, description="bytes of arguments a job may have, as JSON"
    )
    keep_jobs_s: float = Field(
        2_592_000.0,
        ge=60,
        description="seconds that a job is kept after its end; dead letters are kept until somebody looks",
    )
    catch_up_limit: int = Field(
        1000, ge=1, le=1_000_000, description="missed fire times of one schedule that are planned one by one"
    )
    progress_interval_s: float = Field(0.25, ge=0, le=60, description="seconds between two progress writes")
    progress_ttl_s: int = Field(86_400, ge=60, description="seconds that live progress stays in Redis")
    flower_names: Literal["schedule", "task"] = Field(
        "schedule", description="what Flower's Name column shows for a scheduled job"
    )
    limits: dict[str, dict[str, Any]] = Field(
        {}, description='what may run at a time and how fast, as JSON: `{"tenant": {"concurrency": 2}}`'
    )
    deploy: str | None = Field(
        None, description="this deploy's stamp; the greatest one's schedules win (unset: the start time)"
    )
    log_format: Literal["text", "json"] = Field("text", description="how log lines are written")
    webhook_secret: SecretStr | None = Field(
        None,
        description="what webhooks are signed with, as whsec_… in Base64; several apart by spaces",
    )
    webhook_allow: str = Field(
        "", description="networks that webhooks may go to although they are not public, apart by commas"
    )
    api_rate: float = Field(
        100.0,
        ge=0.1,
        description="requests a second that one token, or one address without, may send the API",
    )
    api_url: str = Field("http://127.0.0.1:8787", description="where the status API answers")
    flower_url: str | None = Field(None, description="where Flower answers, for links to it")

    @property
    def webhook_secrets(self) -> list[bytes]:
        """What webhooks are signed with."""
        return [] if self.webhook_secret is None else _secrets(self.webhook_secret.get_secret_value())

    @property
    def webhook_networks(self) -> list[Network]:
        """The networks that `webhook_allow` names."""
        return [ip_network(each.strip()) for each in self.webhook_allow.split(",") if each.strip()]

    @pydantic.field_validator("webhook_secret")
    @classmethod
    def _usable_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _secrets(value.get_secret_value()):
            raise ValueError("it is empty; write whsec_ and 24 to 64 bytes in Base64")
        return value

    @pydantic.field_validator("webhook_allow")
    @classmethod
    def _known_networks(cls, value: str) -> str:
        for each in filter(None, map(str.strip, value.split(","))):
            ip_network(each)
        return value

    @pydantic.field_validator("limits")
    @classmethod
    def _readable_limits(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        limits_from(value)
        return value

    @pydantic.field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        try:
            driver = make_url(value).drivername
        except (ArgumentError, ValueError):  # also for a port that is no number
            raise ValueError(
                "it is no database's address; write sqlite:///path/to/cronq.db or "
                "postgresql://user:password@host:5432/name"
            ) from None
        if driver not in DATABASES:
            raise ValueError(f"{driver!r} is not a database cronq works with: {_choices(driver, DATABASES)}")
        return value

    @pydantic.field_validator("broker_url")
    @classmethod
    def _known_broker(cls, value: str | None) -> str | None:
        scheme = (value or "").partition("://")[0]
        if value is not None and scheme not in BROKERS:
            raise ValueError(f"{scheme!r} is not a broker cronq works with: {_choices(scheme, BROKERS)}")
        return value

    @pydantic.field_validator("redis_url")
    @classmethod
    def _known_redis(cls, value: str) -> str:
        scheme = value.partition("://")[0]
        known = ("redis", "rediss", "unix")
        if scheme not in known:
            raise ValueError(f"{scheme!r} is not a Redis address: {_choices(scheme, known)}")
        return value


def load_settings(conf: Mapping[str, Any] | None = None) -> Settings:
    """Build the settings; raise `SettingsError` that lists every mistake at once.

    conf: a Celery app's configuration, whose `cronq_…` keys count where the environment says nothing.
    """
    given = {
        name: conf[f"cronq_{name}"]
        for name in Settings.model_fields
        if conf is not None and f"cronq_{name}" in conf and f"{PREFIX}{name.upper()}" not in os.environ
    }
    problems = _unknown_names()
    try:
        settings = Settings(**given)
    except pydantic.ValidationError as error:
        problems += [_sentence(detail) for detail in error.errors()]
        raise SettingsError(problems) from None
    if problems:
        raise SettingsError(problems)
    return settings


def _secrets(text: str) -> list[bytes]:
    secrets = []
    for each in text.split():
        head, mark, encoded = each.partition("whsec_")
        try:
            secret = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            secret = b""
        if head or not mark or not 24 <= len(secret) <= 64:  # noqa: PLR2004 - as Standard Webhooks says
            raise ValueError("a secret is written as whsec_ and 24 to 64 bytes in Base64")
        secrets.append(secret)
    return secrets


def hide_password(url: str) -> str:
    """Return `url` as it may be shown: its password replaced by three stars."""
    head, separator, tail = url.partition("://")
    credentials, at, host = tail.rpartition("@")
    user, colon, _password = credentials.partition(":")
    return f"{head}{separator}{user}{colon}{'***' if colon else ''}{at}{host}"


NOT_SETTINGS = frozenset({"CRONQ_FAILPOINT", "CRONQ_ORDERS_PATH", "CRONQ_REPORTS_DIR"})
"""Variables with the prefix that are read elsewhere: fault injection, and the reference tasks' folders."""


def _unknown_names() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | NOT_SETTINGS
    return [
        f"{name}: there is no such setting{_did_you_mean(name, known)}"
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and name not in known
    ]


def _did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else "; list them with: cronq check --list"


def _choices(given: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(given, known, n=1)
    return (f"did you mean {close[0]}://? " if close else "") + "use " + ", ".join(f"{k}://" for k in known)


def _sentence(detail: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    name = PREFIX + str(detail["loc"][0]).upper()
    shown = "***" if name.endswith("_SECRET") else hide_password(str(detail["input"]))
    return f"{name}={shown}: {detail['msg'].removeprefix('Value error, ')}"
