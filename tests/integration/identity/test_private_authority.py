"""An issuer whose certificate no public authority vouches for, such as one on an inner network."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tenancy.identity import HttpJwksFetcher, JwksFetchFailed, JwtIdentitySettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DOCUMENT = b'{"keys": []}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(DOCUMENT), DOCUMENT)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=issuer"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path


@asynccontextmanager
async def issuer(certificate: Path) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listener:
        yield f"https://localhost:{listener.sockets[0].getsockname()[1]}/keys"


class TestAnIssuerWithACertificateOfItsOwn:
    async def test_is_not_trusted_unasked(self, certificate: Path) -> None:
        async with issuer(certificate) as url:
            fetcher = HttpJwksFetcher(url)
            with pytest.raises(JwksFetchFailed):
                await fetcher.fetch()
            await fetcher.aclose()

    async def test_is_trusted_where_the_operator_names_the_certificate(
        self, certificate: Path
    ) -> None:
        async with issuer(certificate) as url:
            fetcher = HttpJwksFetcher(url, ca_file=certificate)
            assert await fetcher.fetch() == DOCUMENT
            await fetcher.aclose()

    def test_a_file_that_holds_no_certificate_is_refused_at_the_start(self, tmp_path: Path) -> None:
        empty = tmp_path / "empty.pem"
        empty.write_text("")
        with pytest.raises(ValueError, match="CA certificates"):
            JwtIdentitySettings("Authorization", "i", "a", "https://issuer/keys", empty)
