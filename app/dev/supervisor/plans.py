"""Which programs make up a development service, and the settings each is given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.dev.ports import LOOPBACK
from app.dev.postgres import EmbeddedPostgres
from app.dev.supervisor.keys import SIGNING_KEYS, VAULT_KEYS
from app.dev.supervisor.ollama import LOCAL_MODEL
from app.dev.supervisor.program import STOA, Plan

# People are known by issuer and name, so it must not change with the port.
_ISSUER = "https://gateway.stoa.localhost"
_AUDIENCE = "stoa"
_JWKS_PATH = "/.well-known/jwks.json"
_MODEL_SLOTS = 2
TOMBSTONES = "tombstones"


@dataclass(frozen=True)
class Addresses:
    """Where everything listens in this start."""

    gateway: int
    web: int
    model: int | None
    """``None`` where an Ollama is used."""

    @property
    def public(self) -> str:
        """What a person opens."""
        return f"http://localhost:{self.gateway}"

    @property
    def through(self) -> str:
        """What answers when a browser's requests get all the way to the web process."""
        return f"http://{LOOPBACK}:{self.gateway}/ok"


def plans(addresses: Addresses, data: Path, postgres: EmbeddedPostgres) -> dict[str, Plan]:
    """Return the plan of every program by its name."""
    service = {
        **_unless_set(_settings_of_one_machine(addresses, data)),
        **_service_settings(addresses, postgres),
    }
    owner = {**service, "STOA_OWNER_DATABASE_URL": postgres.dsn("owner")}
    web = f"http://{LOOPBACK}:{addresses.web}"
    gateway = f"http://{LOOPBACK}:{addresses.gateway}"
    gateway_command = [*STOA, "gateway", "--upstream", web, "--port", str(addresses.gateway)]
    gateway_command += ["--issuer", _ISSUER, "--audience", _AUDIENCE]
    gateway_command += ["--key-file", str(data / "gateway-key.json")]
    web_command = [*STOA, "web", "--host", LOOPBACK, "--port", str(addresses.web)]
    result = [
        Plan("migrate", [*STOA, "migrate"], owner, takes_turn=True),
        Plan("web", web_command, service, takes_turn=True, health=f"{web}/ready"),
        Plan("worker", [*STOA, "worker"], service, takes_turn=True),
        Plan("gateway", gateway_command, {}, health=f"{gateway}{_JWKS_PATH}"),
    ]
    if addresses.model is not None:
        result.append(_model(addresses.model, data))
    return {plan.name: plan for plan in result}


def _model(port: int, data: Path) -> Plan:
    command = [*STOA, "model", "--host", LOOPBACK, "--port", str(port)]
    command += ["--cache", str(data / "model"), "--slots", str(_MODEL_SLOTS)]
    return Plan("model", command, {}, health=f"http://{LOOPBACK}:{port}/api/version")


def _settings_of_one_machine(addresses: Addresses, data: Path) -> dict[str, str]:
    """What connections to tool servers and erasures need, so that both can be tried."""
    return {
        "STOA_VAULT_KEYS_FILE": str(data / VAULT_KEYS),
        "STOA_SIGNING_KEYS_FILE": str(data / SIGNING_KEYS),
        "STOA_TOMBSTONE_FOLDER": str(data / TOMBSTONES),
        "STOA_PUBLIC_URL": addresses.public,
        "STOA_MCP_FOLDER": str(data / "mcp"),
    }


def _unless_set(settings: Mapping[str, str]) -> dict[str, str]:
    """Those for which the developer has not set anything themselves in the environment."""
    return {name: value for name, value in settings.items() if name not in os.environ}


def _service_settings(addresses: Addresses, postgres: EmbeddedPostgres) -> Mapping[str, str]:
    settings = {
        "STOA_DATABASE_URL": postgres.dsn("service"),
        "STOA_DISPATCH_DATABASE_URL": postgres.dsn("dispatch"),
        "STOA_MAINTENANCE_DATABASE_URL": postgres.dsn("maintenance"),
        "STOA_LISTEN_DATABASE_URL": postgres.dsn("service"),
        "STOA_IDENTITY_MODE": "jwt",
        "STOA_IDENTITY_HEADER": "Authorization",
        "STOA_IDENTITY_ISSUER": _ISSUER,
        "STOA_IDENTITY_AUDIENCE": _AUDIENCE,
        "STOA_IDENTITY_JWKS_URL": f"http://{LOOPBACK}:{addresses.gateway}{_JWKS_PATH}",
    }
    if addresses.model is not None:
        settings |= {
            "STOA_OLLAMA_URL": f"http://{LOOPBACK}:{addresses.model}",
            "STOA_OLLAMA_CAPACITY": str(_MODEL_SLOTS),
            "STOA_MODEL": LOCAL_MODEL,
        }
    return settings
