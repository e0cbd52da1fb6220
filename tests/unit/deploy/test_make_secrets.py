"""``deploy/make-secrets``, run as an operator runs it."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.engine import make_url

from tenancy.migrate import RoleDsns
from tenancy.named_keys import parse_named_keys
from tests.unit.deploy.composition import DEPLOY, composition

if TYPE_CHECKING:
    from pathlib import Path

BY_HAND = {"operator_password_hash", "person_password_hash"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("secrets")
    return folder, _make(folder)


def _make(folder: Path) -> str:
    done = subprocess.run(
        [DEPLOY / "make-secrets", folder], check=True, capture_output=True, text=True
    )
    return done.stderr


class TestTheSecrets:
    def test_are_all_that_the_composition_names(self, made: tuple[Path, str]) -> None:
        folder, said = made
        files = {path.name for path in folder.iterdir()}
        assert files | BY_HAND == set(composition()["secrets"])
        assert all(name in said for name in BY_HAND), "what is left to do is said"

    def test_are_closed_to_others_on_the_host(self, made: tuple[Path, str]) -> None:
        folder, _ = made
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_stay_as_they_are_when_made_again(self, made: tuple[Path, str]) -> None:
        folder, _ = made
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        _make(folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_have_keys_that_are_no_other_deployments(
        self, made: tuple[Path, str], tmp_path: Path
    ) -> None:
        _make(tmp_path)
        kinds = ("vault_keys", "signing_keys")
        texts = [(each / kind).read_text() for each in (made[0], tmp_path) for kind in kinds]
        assert [list(parse_named_keys(text)) for text in texts] == [["k1"]] * 4
        assert len(set(texts)) == 4

    def test_give_each_database_role_a_url_of_its_own(self, made: tuple[Path, str]) -> None:
        folder, _ = made

        def url(name: str) -> str:
            return (folder / name).read_text(encoding="utf-8")

        roles = RoleDsns(
            url("database_url"), url("dispatch_database_url"), url("maintenance_database_url")
        ).roles()
        assert roles.service == "stoa_service"
        owner = make_url(url("owner_database_url"))
        assert owner.password == url("postgres_password")
        assert owner.database == composition()["services"]["postgres"]["environment"]["POSTGRES_DB"]

    def test_hold_a_certificate_that_the_strictest_check_accepts_for_dex(
        self, made: tuple[Path, str]
    ) -> None:
        folder, _ = made
        client = ssl.create_default_context(cafile=folder / "dex_certificate")
        client.verify_flags |= ssl.VERIFY_X509_STRICT
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(folder / "dex_certificate", folder / "dex_certificate_key")
        _shake_hands(client, server, "dex")

    def test_hold_a_certificate_for_nobody_else(self, made: tuple[Path, str]) -> None:
        folder, _ = made
        client = ssl.create_default_context(cafile=folder / "dex_certificate")
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(folder / "dex_certificate", folder / "dex_certificate_key")
        with pytest.raises(ssl.SSLCertVerificationError):
            _shake_hands(client, server, "web")


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """A whole TLS handshake, in memory."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
