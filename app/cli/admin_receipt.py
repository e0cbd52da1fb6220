"""``stoa admin receipt``: whether a receipt is one, as anybody can tell who has the public keys."""

from __future__ import annotations

from typing import Annotated

import typer

_LARGEST = 256 * 1024


def receipt(
    file: Annotated[
        str,
        typer.Argument(
            help="With the receipt, or the document that it is in; `-` is standard input.",
            show_default=False,
        ),
    ],
    jwks: Annotated[
        str | None,
        typer.Option(
            help="URL or file of the published keys (`/.well-known/jwks.json`)."
            " Default: those of STOA_SIGNING_KEYS.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Verify the receipt of an erasure, and print what it says.

    Exits 1 when it was not signed by one of the keys as it is.
    """
    import asyncio
    import json

    from app.erasure.receipts import verify_receipt

    text = _receipt_in(_read(file))
    published = asyncio.run(_published(jwks))
    typer.echo(json.dumps(verify_receipt(text, published), indent=2))


def _read(file: str) -> str:
    """What stands in a file, or comes in.

    Raises:
        typer.BadParameter: it cannot be read.
    """
    import sys
    from pathlib import Path

    try:
        if file == "-":
            return sys.stdin.buffer.read(_LARGEST).decode()
        with Path(file).open("rb") as opened:
            return opened.read(_LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise typer.BadParameter(f"{file} cannot be read: {why}.") from error


def _receipt_in(text: str) -> str:
    """The receipt alone, where it is in the document of its erasure."""
    import json

    if not text.lstrip().startswith("{"):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return str(found.get("receipt") or "")


async def _published(jwks: str | None) -> bytes:
    """The keys to verify with.

    Raises:
        SettingsError: none are named, and the settings have none.
        ReceiptRefused: they cannot be had.
        typer.BadParameter: that is neither a file nor a URL that may be asked.
    """
    import json

    if jwks is None:
        from app.erasure.signing import signing_keys
        from app.settings import SettingsError, load_settings

        keys = signing_keys(load_settings())
        if keys is None:
            raise SettingsError(
                "Say where the keys are published (--jwks), or set STOA_SIGNING_KEYS."
            )
        return json.dumps(keys.published()).encode()
    if "://" not in jwks:
        return _read(jwks).encode()
    from urllib.parse import urlsplit

    from app.erasure.errors import ReceiptRefused
    from tenancy.identity.fetch import HttpJwksFetcher, JwksFetchFailed
    from tenancy.identity.settings import is_loopback

    parts = urlsplit(jwks)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise typer.BadParameter("Keys come by https, or by http from this machine.")
    fetcher = HttpJwksFetcher(jwks)
    try:
        return await fetcher.fetch()
    except JwksFetchFailed as error:
        raise ReceiptRefused(f"The published keys cannot be had: {error}.") from error
    finally:
        await fetcher.aclose()
