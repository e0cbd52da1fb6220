"""``deploy/compose.yaml`` holds together, as far as can be known without a Docker engine."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from compose_spec import PyCompose

from app.api.services import identity_settings
from app.settings import Settings, load_settings
from app.tools.servers import Timeouts
from tests.support.vaults import keys_of
from tests.unit.deploy.composition import (
    DEPLOY,
    composition,
    services,
    stoa_services,
    variables,
)

if TYPE_CHECKING:
    from pathlib import Path

SERVICES = tuple(services())
TALK = {
    ("oauth2-proxy", "web"),
    ("oauth2-proxy", "dex"),
    ("web", "dex"),
    ("web", "postgres"),
    ("worker", "postgres"),
    ("migrate", "postgres"),
    ("web", "ollama"),
    ("worker", "ollama"),
    ("model", "ollama"),
}
"""Who has business with whom."""
SERVERS = ("oauth2-proxy", "dex", "web", "postgres", "ollama")
"""Those that listen."""


def _shared_networks(one: str, other: str) -> set[str]:
    return set(services()[one]["networks"]) & set(services()[other]["networks"])


class TestTheFile:
    def test_is_a_compose_file(self) -> None:
        PyCompose.from_json(json.dumps(composition()))

    @pytest.mark.parametrize("kind", ["volumes", "networks", "secrets"])
    def test_declares_exactly_what_its_services_use(self, kind: str) -> None:
        used = {
            str(item).partition(":")[0]
            for service in services().values()
            for item in service.get(kind, ())
            if not str(item).startswith(("./", "/"))
        }
        assert used == set(composition()[kind])

    @pytest.mark.parametrize("name", SERVICES)
    def test_names_only_services_that_exist_and_can_satisfy_the_condition(self, name: str) -> None:
        all_services = services()
        for other, wait in all_services[name].get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in all_services[other]
            else:
                assert all_services[other]["restart"] == "on-failure"

    @pytest.mark.parametrize("name", SERVICES)
    def test_mounts_only_files_that_exist(self, name: str) -> None:
        mounts = services()[name].get("volumes", ())
        sources = [mount.partition(":")[0] for mount in mounts]
        assert all((DEPLOY / path).is_file() for path in sources if path.startswith("./"))

    def test_explains_every_variable_with_the_default_it_has(self) -> None:
        lines = (DEPLOY / ".env.example").read_text(encoding="utf-8").splitlines()
        explained = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        assert explained == variables()

    def test_holds_no_secret(self) -> None:
        for service in services().values():
            for name, value in service.get("environment", {}).items():
                if any(word in name for word in ("SECRET", "PASSWORD", "DATABASE_URL", "_KEY")):
                    assert name.endswith("_FILE"), name
                    assert value.startswith("/run/secrets/")

    def test_every_file_of_a_secret_is_one_that_the_service_is_given(self) -> None:
        for name, service in services().items():
            for value in service.get("environment", {}).values():
                folder, _, secret = str(value).rpartition("/")
                if folder == "/run/secrets":
                    assert secret in service["secrets"], name


class TestEachService:
    @pytest.mark.parametrize("name", SERVICES)
    def test_comes_from_a_pinned_image_or_is_built_here(self, name: str) -> None:
        service = services()[name]
        if "build" in service:
            return
        repository, _, tag = service["image"].partition(":")
        assert tag[:1].isdigit() or tag[:2] == "v2", "a version, not a name that moves"
        assert "." not in repository, "which registry is the operator's to decide"

    @pytest.mark.parametrize("name", SERVICES)
    def test_has_no_privileges_it_could_gain_or_lose(self, name: str) -> None:
        service = services()[name]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert "cap_add" not in service

    @pytest.mark.parametrize("name", [name for name in SERVICES if name != "ollama"])
    def test_cannot_write_to_its_image(self, name: str) -> None:
        assert services()[name]["read_only"] is True

    @pytest.mark.parametrize("name", SERVICES)
    def test_is_started_again_when_it_ends(self, name: str) -> None:
        assert services()[name]["restart"] in {"unless-stopped", "on-failure"}

    def test_shares_an_inner_network_with_those_it_has_business_with(self) -> None:
        inner = {name for name, net in composition()["networks"].items() if net.get("internal")}
        for one, other in TALK:
            assert _shared_networks(one, other) & inner, (one, other)

    def test_that_listens_cannot_be_reached_by_another_without_business(self) -> None:
        for one, other in combinations(SERVERS, 2):
            if (one, other) not in TALK and (other, one) not in TALK:
                assert not _shared_networks(one, other), (one, other)

    def test_is_published_on_loopback_only_and_only_for_sign_in(self) -> None:
        published = {name: found["ports"] for name, found in services().items() if "ports" in found}
        assert set(published) == {"oauth2-proxy", "dex"}
        assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)

    def test_that_fetches_pages_has_a_way_out_that_nobody_else_is_on(self) -> None:
        networks = composition()["networks"]
        outer = {name for name in services()["worker"]["networks"] if not networks[name]}
        on_it = {name for name, each in services().items() if outer & set(each["networks"])}
        assert (len(outer), on_it) == (1, {"worker"})

    def test_web_and_workers_are_several(self) -> None:
        assert services()["web"]["deploy"]["replicas"] > 1
        assert services()["worker"]["deploy"]["replicas"] > 1


class TestTheSettingsOfStoa:
    @pytest.mark.parametrize("name", stoa_services())
    def test_are_ones_that_exist_and_can_be_used(
        self, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = _loaded(name, monkeypatch, tmp_path)
        assert settings.database_url is not None

    def test_of_the_web_process_check_assertions_against_dex(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = _loaded("web", monkeypatch, tmp_path)
        monkeypatch.setattr(settings, "identity_ca", None)
        assert identity_settings(settings).jwks_url == "https://dex:5554/dex/keys"

    def test_of_the_web_process_have_the_roles_that_operators_pages_need(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = _loaded("web", monkeypatch, tmp_path)
        assert settings.required("dispatch_database_url")
        assert settings.required("maintenance_database_url")

    def test_of_the_worker_drop_what_is_over_and_serve_metrics_inside_only(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = _loaded("worker", monkeypatch, tmp_path)
        assert settings.required("maintenance_database_url")
        assert settings.metrics_port is not None
        assert "ports" not in services()["worker"]

    def test_of_the_worker_give_a_call_of_a_tool_its_time_when_it_ends(self) -> None:
        seconds = int(services()["worker"]["stop_grace_period"].removesuffix("s"))
        assert seconds >= Timeouts().call + 15  # as docs/operating.md counts

    def test_of_the_worker_have_no_part_in_identity(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = _loaded("worker", monkeypatch, tmp_path)
        assert settings.dispatch_database_url is not None
        assert settings.owner_database_url is None

    def test_name_the_same_tool_servers_to_web_processes_and_workers(self) -> None:
        for name in ("web", "worker"):
            service = services(MCP_CONFIG="/etc/stoa/mcp.json")[name]
            assert service["environment"]["STOA_MCP_CONFIG"] == "/etc/stoa/mcp.json"
            assert "./mcp.json:/etc/stoa/mcp.json:ro" in service["volumes"]

    def test_keep_what_tool_servers_keep(self) -> None:
        dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        (folder,) = re.findall(r"STOA_MCP_FOLDER=(\S+)", dockerfile)
        assert f"tools:{folder}" in services()["worker"]["volumes"]
        assert f"-m 0700 {folder}" in dockerfile

    def test_let_people_be_erased_and_know_of_it_after_a_restore(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        for name in ("web", "worker"):
            settings = _loaded(name, monkeypatch, tmp_path)
            assert settings.signing_keys is not None
            assert f"tombstones:{settings.tombstone_folder}" in services()[name]["volumes"]
            assert f"-m 0700 {settings.tombstone_folder}" in dockerfile
        assert not any("tombstones" in str(each) for each in services()["postgres"]["volumes"])

    def test_leave_database_connections_to_spare(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        pool = _loaded("web", monkeypatch, tmp_path).database_pool_size
        opened = {"web": 3 * pool + 10, "worker": 3 * pool + 17}  # as docs/operating.md counts
        all_services = services()
        most = sum(all_services[name]["deploy"]["replicas"] * n for name, n in opened.items())
        (setting,) = (
            part for part in all_services["postgres"]["command"] if "max_connections" in part
        )
        assert 2 * most < int(setting.partition("=")[2])

    def test_agree_with_the_model_server(self) -> None:
        ollama = services()["ollama"]["environment"]
        worker = services()["worker"]["environment"]
        assert ollama["OLLAMA_NUM_PARALLEL"] == worker["STOA_OLLAMA_CAPACITY"]
        assert ollama["OLLAMA_CONTEXT_LENGTH"] == worker["STOA_MODEL_CONTEXT"]
        assert services()["model"]["command"] == ["pull", worker["STOA_MODEL"]]


DATABASE_URL = "postgresql://role:word@postgres/stoa"
KEYS = keys_of("k1")


def _loaded(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Settings:
    """The settings as the service's process would find them, its secrets in a folder of ours."""
    monkeypatch.chdir(folder)
    for variable, value in services()[name]["environment"].items():
        path = str(value)
        if path.startswith("/run/secrets/"):
            path = str(folder / path.rpartition("/")[2])
            kept = KEYS if path.endswith("_keys") else DATABASE_URL
            (folder / path).write_text(kept, encoding="utf-8")
        monkeypatch.setenv(variable, path)
    return load_settings()
