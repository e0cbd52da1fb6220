"""Every setting of the service: the environment, ``stoa.toml``, and ``STOA_…_FILE`` for secrets.

The names are a contract (``docs/settings.md`` is generated from this file). An unknown or
missing one stops the start with a message that says what to set.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tenancy.named_keys import parse_named_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

PREFIX = "STOA_"
TOML_FILE = Path("stoa.toml")
_NOT_SETTINGS = ("STOA_TEST_", "STOA_BENCH_")
BuiltinTool = Literal["memory", "fetch", "time"]
AskWord = Literal["never", "first_use", "always"]
POOL_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"
# The drivers get it as it is: no `+driver` in it, and no `key=value` pairs.
_DSN = re.compile(r"postgres(ql)?://(.*@)?(\[[^]]*\]|[^:/?@]*)(:\d+)?([/?].*)?", re.DOTALL)

_DAY = 24 * 3600
_LEAST_DAYS = {"audit_retention_seconds": 90, "usage_retention_seconds": 62}
"""What the database keeps whatever the settings say: the record, and what budgets count."""


class SettingsError(Exception):
    """The settings cannot be used; the message says which to set and how."""


class FileSecrets(PydanticBaseSettingsSource):
    """Reads ``STOA_NAME`` from the file that ``STOA_NAME_FILE`` names."""

    def get_field_value(self, field: object, field_name: str) -> tuple[object, str, bool]:  # noqa: ARG002
        """Return the content of the field's file, if one is named."""
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        if path is None:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except (OSError, UnicodeDecodeError) as error:
            name = f"{PREFIX}{field_name.upper()}_FILE"
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(f"{name} cannot be read: {why}") from error

    def __call__(self) -> dict[str, object]:
        """Return every field that has a file."""
        found = {
            name: self.get_field_value(None, name)[0] for name in self.settings_cls.model_fields
        }
        return {name: value for name, value in found.items() if value is not None}


class PoolSettings(BaseModel):
    """One ``[[pool]]``: a model on a model server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=POOL_NAME)
    url: HttpUrl
    model: str | None = Field(None, min_length=1, max_length=200)
    capacity: int = Field(1, ge=1, le=10_000)
    server_capacity: int | None = Field(None, ge=1, le=10_000)
    context: int | None = Field(None, ge=512)
    output: int | None = Field(None, ge=1)
    images: bool | None = None
    provider: str | None = Field(None, min_length=1, max_length=100)


class Settings(BaseSettings):
    """What an operator may set. Seconds and bytes unless a name says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", toml_file=TOML_FILE, hide_input_in_errors=True
    )

    database_url: SecretStr | None = Field(
        None, description="PostgreSQL DSN of the service role: everything done for a user."
    )
    dispatch_database_url: SecretStr | None = Field(
        None, description="DSN of the dispatch role: claims and leases; cannot read content."
    )
    maintenance_database_url: SecretStr | None = Field(
        None, description="DSN of the maintenance role: counts and retention; cannot read content."
    )
    owner_database_url: SecretStr | None = Field(
        None, description="DSN that `stoa migrate` uses; creates the other roles where missing."
    )
    listen_database_url: SecretStr | None = Field(
        None,
        description="Direct DSN for LISTEN (not through PgBouncer). Default: the service role's.",
    )
    database_pool_size: int = Field(
        10, ge=1, le=200, description="Connections per role and process."
    )
    database_prepared_statements: bool = Field(
        True, description="Switch off behind a transaction-mode pooler older than PgBouncer 1.21."
    )

    identity_mode: Literal["jwt"] = Field(
        "jwt", description="How the gateway's word is checked. This version knows `jwt`."
    )
    identity_header: str = Field(
        "Authorization", description="The one header that carries the assertion."
    )
    identity_issuer: str | None = Field(None, description="Exact `iss` of the assertion.")
    identity_audience: str | None = Field(None, description="Exact `aud` of the assertion.")
    identity_jwks_url: HttpUrl | None = Field(
        None, description="Where the issuer publishes its keys: https, or http on loopback."
    )
    identity_ca: Path | None = Field(
        None, description="File of CA certificates (PEM) for an issuer without a public one."
    )
    identity_admin_claim: str = Field("groups", description="Claim that names a person's roles.")
    identity_admin_value: str = Field(
        "stoa-admins", description="The value that makes an operator."
    )
    sign_out_url: str = Field(
        "/oauth2/sign_out", description="Where the gateway signs a person out; a path or URL."
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Other origins whose pages may call the API, comma-separated."
    )

    ollama_url: HttpUrl = Field(
        HttpUrl("http://localhost:11434"), description="The model server (Ollama's wire)."
    )
    ollama_capacity: int = Field(1, ge=1, description="Model calls the server runs at once.")
    pool: tuple[PoolSettings, ...] = Field(
        (),
        description="Several model servers or models: `[[pool]]` tables in `stoa.toml`, instead of"
        " `STOA_OLLAMA_URL`. See docs/operating.md.",
    )
    pool_wait_seconds: float = Field(
        10, ge=0, description="How long calls wait for a model none of whose servers works."
    )
    seat_cooldown_seconds: float = Field(
        10, ge=0, description="How long a dead worker's model call keeps its seat."
    )
    model: str = Field("smollm2", description="Name of the default model.")
    model_context: int = Field(4096, ge=512, description="Tokens of context (`num_ctx`), pinned.")
    model_output: int = Field(1024, ge=1, description="Most tokens of one answer (`num_predict`).")
    model_images: bool | None = Field(
        None,
        description="Whether the default model reads images; else it is told of a tool's in words."
        " Default: as its server says.",
    )
    restart_url: SecretStr | None = Field(
        None,
        description="An address of the deployment's own that restarts the service: when an operator"
        " asks for it, one POST without a body goes there. Default: no restart is offered.",
    )
    catalogue_url: str | None = Field(
        None,
        description="Where limits and prices of models are published, in the form of"
        " https://models.dev/api.json: a path, or an address. Default: none are looked up.",
    )
    catalogue_folder: Path = Field(
        Path(".stoa/catalogue"),
        description="Where the newest good catalogue of models is kept; processes may share it.",
    )
    catalogue_seconds: float = Field(
        _DAY, ge=60, description="How old the catalogue of models may be before it is read anew."
    )
    graphs: Path | None = Field(
        None, description="Path of a `langgraph.json` with graphs beside the built-in `agent`."
    )

    system_prompt: Path | None = Field(
        None, description="File with the agent's system prompt, read for each call."
    )

    mcp_config: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Paths of `mcp.json` files with the servers that tools come from,"
        " comma-separated. See docs/tools.md.",
    )
    builtin_tools: Annotated[tuple[BuiltinTool, ...], NoDecode] = Field(
        ("memory", "fetch", "time"),
        description="Tools that come with the service, comma-separated; empty: none.",
    )
    approval_default: AskWord = Field(
        "never",
        description="When people are asked before a tool of an operator's server is called, unless"
        " its `mcp.json` says: `never`, `first_use` in a conversation, `always`.",
    )
    approval_fetch: AskWord = Field(
        "first_use",
        description="When people are asked before `fetch` visits a host: `first_use` is once for"
        " each host in a conversation.",
    )
    approval_seconds: float = Field(
        30 * 86400,
        gt=0,
        le=10 * 365 * 86400,
        description="How long people have to decide, and how long a conversation stays open for"
        " what was approved in it. What nobody decided in time is not done.",
    )
    mcp_own_servers: bool = Field(
        False, description="Whether people may add servers of their own, by a public HTTPS URL."
    )
    mcp_folder: Path = Field(
        Path(".stoa/mcp"),
        description="Where tool servers' own folders are made, one per user. One service's alone:"
        " what is nobody's any more is deleted.",
    )
    mcp_sandbox: Literal["auto", "bubblewrap", "none"] = Field(
        "auto",
        description="How tool servers that are child processes are kept apart: `auto` uses"
        " bubblewrap where it works, `bubblewrap` refuses to start without it.",
    )
    mcp_connections: int = Field(
        200, ge=1, description="Connections to tool servers that one worker keeps open."
    )
    mcp_connections_per_user: int = Field(
        8, ge=1, description="Of these, how many may be one person's."
    )
    mcp_idle_seconds: float = Field(
        300, gt=0, description="How long a connection to a tool server is kept unused."
    )
    vault_keys: SecretStr | None = Field(
        None,
        description="Keys that credentials are kept under: `id:base64` of 32 bytes each,"
        " comma-separated; the first one encrypts. Without it people cannot store credentials.",
    )
    signing_keys: SecretStr | None = Field(
        None,
        description="Keys that receipts of erasures are signed with, and that what stays of a"
        " person is hashed under: `id:base64` of 32 bytes each, comma-separated; the first one"
        " signs. Without it nobody can be erased. See docs/leaving.md.",
    )
    tombstone_folder: Path | None = Field(
        None,
        description="Folder in which each erasure leaves a file, by which it is done again after"
        " the database was restored from a backup; kept apart from the database's backups.",
    )
    tombstone_seconds: float = Field(
        90 * 86400,
        ge=31 * 86400,
        le=10 * 365 * 86400,
        description="How long somebody who was erased is known again, by a keyed hash, and their"
        " erasure done again after a restore; longer than any backup is kept.",
    )
    public_url: HttpUrl | None = Field(
        None,
        description="Where people reach the service; tool servers' authorizations come back here.",
    )
    embedding_model: str | None = Field(
        None, description="Model that memories are compared by; a pool's. Default: words only."
    )

    max_running_per_user: int = Field(4, ge=1, description="Runs of one person in flight at once.")
    max_queued_per_user: int = Field(1000, ge=0, description="Runs of one person that wait.")
    max_threads_per_user: int = Field(10_000, ge=0, description="Threads one person may keep.")
    requests_per_minute: int = Field(1200, ge=1, description="Requests one person may make.")
    tokens_per_day: int | None = Field(
        None, ge=0, description="Tokens one person may use in a day (UTC). Default: any number."
    )
    tokens_per_month: int | None = Field(
        None, ge=0, description="Tokens one person may use in a month (UTC). Default: any number."
    )
    memory_bytes_per_user: int = Field(
        64 * 1024 * 1024, ge=0, description="Bytes one person may keep in the store."
    )
    max_streams_per_user: int = Field(32, ge=1, description="Streams one person may hold open.")
    max_body_bytes: int = Field(8 * 1024 * 1024, ge=1024, description="Largest body of a request.")
    max_message_bytes: int = Field(
        1024 * 1024, ge=1, description="Longest text of one message from a person."
    )
    worker_concurrency: int = Field(64, ge=1, description="Runs in flight per worker.")
    lease_seconds: float = Field(30, gt=0, description="How long a worker owns runs unrenewed.")
    heartbeat_seconds: float = Field(10, gt=0, description="How often a worker renews its lease.")
    reap_seconds: float = Field(5, gt=0, description="How often expired leases are looked for.")
    drain_seconds: float = Field(
        8, ge=0, description="How long a worker that is told to end lets running steps finish."
    )
    recursion_limit: int = Field(25, ge=1, description="Steps per run.")
    run_seconds: float = Field(3600, gt=0, description="Time per run.")
    max_attempts: int = Field(3, ge=1, description="Claims of one run after crashes.")

    delta_retention_seconds: float = Field(
        3600,
        ge=0,
        description="How long after a run's end the pieces of its messages are kept; 0: no longer.",
    )
    event_retention_seconds: float = Field(
        30 * _DAY, ge=0, description="How long after a run's end its log is kept. 0: for ever."
    )
    run_retention_seconds: float = Field(
        0, ge=0, description="How long after its end a run is kept. 0: for as long as its thread."
    )
    checkpoint_retention_seconds: float = Field(
        30 * _DAY,
        ge=0,
        description="How long a thread's earlier states are kept. Those of its last turn, and those"
        " that these are read from, are as long as the thread; 0: all.",
    )
    thread_idle_seconds: float = Field(
        0, ge=0, description="How long a thread may lie idle before it is deleted. 0: for ever."
    )
    audit_retention_seconds: float = Field(
        400 * _DAY, description="How long the record is kept: 90 days at least. 0: for ever."
    )
    usage_retention_seconds: float = Field(
        400 * _DAY,
        description="How long is known who used how much: 62 days at least, since budgets count a"
        " month. 0: for ever.",
    )

    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Port of a worker's metrics (Prometheus). Default: none."
    )
    web_metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Port of a web process's metrics. Default: none."
    )
    metrics_host: str = Field(
        "127.0.0.1", min_length=1, description="Address that metrics are served on; keep it inside."
    )

    otlp_url: HttpUrl | None = Field(
        None,
        description="Collector that traces are sent to (OpenTelemetry, OTLP over HTTP): its address"
        " without `/v1/traces`. Default: none are made. See docs/operating.md.",
    )

    log_format: Literal["console", "json"] = Field("console", description="How log lines look.")

    @field_validator("cors_origins", "mcp_config", "builtin_tools", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator(
        "embedding_model",
        "public_url",
        "tombstone_folder",
        "catalogue_url",
        "restart_url",
        "otlp_url",
        mode="before",
    )
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """As Compose has a variable that nobody has filled in."""
        return value or None

    @field_validator(
        "database_url",
        "dispatch_database_url",
        "maintenance_database_url",
        "owner_database_url",
        "listen_database_url",
    )
    @classmethod
    def _is_a_dsn(cls, value: SecretStr | None) -> SecretStr | None:
        dsn = value.get_secret_value() if value is not None else ""
        if dsn and not _DSN.fullmatch(dsn):
            raise ValueError("must look like postgresql://role:password@host:5432/database")
        return value

    @field_validator("restart_url")
    @classmethod
    def _can_be_asked(cls, value: SecretStr | None) -> SecretStr | None:
        address = urlsplit("" if value is None else value.get_secret_value())
        if value is not None and (address.scheme not in ("http", "https") or not address.hostname):
            raise ValueError("must be an address that begins with http:// or https://")
        return value

    @field_validator("catalogue_url")
    @classmethod
    def _can_be_read(cls, value: str | None) -> str | None:
        scheme, is_url, _ = (value or "").partition("://")
        if is_url and scheme not in ("http", "https", "file"):
            raise ValueError("must be a path, or an address that begins with http:// or https://")
        return value

    @field_validator("audit_retention_seconds", "usage_retention_seconds")
    @classmethod
    def _is_long_enough(cls, value: float, info: ValidationInfo) -> float:
        days = _LEAST_DAYS[str(info.field_name)]
        if value != 0 and value < days * _DAY:
            raise ValueError(f"must be 0 (for ever), or {days} days at least: {days * _DAY}")
        return value

    @field_validator("vault_keys", "signing_keys")
    @classmethod
    def _are_keys(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuse keys that cannot be read, in words that do not repeat them."""
        text = "" if value is None else value.get_secret_value().strip()
        if not text:
            return None
        parse_named_keys(text)
        return SecretStr(text)

    @model_validator(mode="after")
    def _lease_outlives_heartbeats(self) -> Self:
        if self.lease_seconds < 2 * self.heartbeat_seconds:
            raise ValueError(
                "STOA_LEASE_SECONDS must be at least twice STOA_HEARTBEAT_SECONDS,"
                " or one late heartbeat loses every run"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, secret files, and ``stoa.toml``."""
        return (
            init_settings,
            env_settings,
            FileSecrets(settings_cls),
            TomlConfigSettingsSource(settings_cls),
        )

    def required(self, name: str) -> str:
        """Return a setting that this process cannot do without.

        Raises:
            SettingsError: it is not set; the message names the variable.
        """
        value = getattr(self, name)
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")
        if not text:
            meaning = type(self).model_fields[name].description
            raise SettingsError(f"Set {PREFIX}{name.upper()}: {meaning}")
        return text


def load_settings(**overrides: object) -> Settings:
    """Read the settings from where they may stand.

    Raises:
        SettingsError: one is unknown, missing or malformed. The message has no values in it.
    """
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    names = sorted(known)
    known |= {f"{name}_FILE" for name in known}
    unknown = sorted(
        name
        for name in os.environ
        if name.startswith(PREFIX) and not name.startswith(_NOT_SETTINGS) and name not in known
    )
    if unknown:
        said = ", ".join(_with_a_guess(name, names) for name in unknown)
        raise SettingsError(f"Unknown setting: {said}. See docs/settings.md.")
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsError("\n".join(_complaint(item) for item in error.errors())) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{TOML_FILE} cannot be read: {error}") from error


def _with_a_guess(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _complaint(item: ErrorDetails) -> str:
    if item["loc"][:1] == ("pool",):
        return _complaint_about_pools(item)
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":  # the environment's names have been looked at before
        said = _with_a_guess(name, Settings.model_fields)
        return f"Unknown setting in {TOML_FILE}: {said}. See docs/settings.md."
    message = item["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{name.upper()}: {message}" if name else message


def _complaint_about_pools(item: ErrorDetails) -> str:
    """In the words of the file, where pools stand, and counted as people count."""
    message = item["msg"].removeprefix("Value error, ")
    match item["loc"]:
        case (_, int(index), str(name)) if item["type"] == "extra_forbidden":
            said = _with_a_guess(name, PoolSettings.model_fields)
            return f"Unknown setting of [[pool]] {index + 1}: {said}. See docs/operating.md."
        case (_, int(index), str(name)):
            return f"[[pool]] {index + 1}, {name}: {message}"
        case _:
            return f"Pools are tables, each under a [[pool]] of its own in {TOML_FILE}: {message}"
