"""The sign-in page."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from string import Template
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from app.dev.gateway.person import LONGEST_NAME

if TYPE_CHECKING:
    from app.dev.gateway.language import Language

_STYLE = """
:root { color-scheme: light dark; font: 100%/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { box-sizing: border-box; width: 100%; max-width: 24rem; padding: 1.5rem; }
label { display: block; margin-top: 1rem; }
input, button { font: inherit; }
input[type=text] { box-sizing: border-box; width: 100%; padding: 0.75rem; margin-top: 0.25rem; }
input[type=checkbox] { width: 1.25rem; height: 1.25rem; vertical-align: -0.2em; }
button { width: 100%; min-height: 3rem; margin-top: 1.5rem; cursor: pointer; }
.error { color: light-dark(#b00020, #ff8a95); margin: 0.25rem 0 0; }
.note { opacity: 0.8; font-size: 0.875rem; }
"""

_PAGE = Template("""<!doctype html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
<h1>$title</h1>
<form method="post" action="/oauth2/sign_in">
<input type="hidden" name="rd" value="$rd">
<label for="name">$label</label>
<input type="text" id="name" name="name" required maxlength="$longest" autofocus
 autocomplete="username" autocapitalize="words" spellcheck="false"$invalid>
$error
<label><input type="checkbox" name="operator" value="1"> $operator</label>
<button type="submit">$button</button>
</form>
<p class="note">$note</p>
</main>
</body>
</html>
""")

_TEXTS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "Sign in to Stoa",
        "label": "Your name",
        "operator": "Sign in as an operator",
        "button": "Sign in",
        "note": "This sign-in is for development on this machine: any name works,"
        " and each name is a user of its own.",
        "error": f"Please give a name of up to {LONGEST_NAME} characters.",
    },
    "de": {
        "title": "Bei Stoa anmelden",
        "label": "Ihr Name",
        "operator": "Als Betreiber anmelden",
        "button": "Anmelden",
        "note": "Diese Anmeldung dient der Entwicklung auf diesem Rechner: Jeder Name geht,"
        " und jeder Name ist ein eigener Benutzer.",
        "error": f"Bitte geben Sie einen Namen mit höchstens {LONGEST_NAME} Zeichen an.",
    },
}

_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # Not "no-referrer": browsers would then send ``Origin: null`` with the form.
    "Referrer-Policy": "same-origin",
    "Vary": "Accept-Language",
    "X-Content-Type-Options": "nosniff",
}


def sign_in_page(language: Language, *, back_to: str, refused: bool = False) -> HTMLResponse:
    """Return the form; once more with a word about the name, if that was refused."""
    texts = _TEXTS[language]
    error = f'<p class="error" id="error" role="alert">{texts["error"]}</p>' if refused else ""
    html = _PAGE.substitute(
        texts,
        language=language,
        style=_STYLE,
        rd=escape(back_to, quote=True),
        longest=LONGEST_NAME,
        invalid=' aria-invalid="true" aria-describedby="error"' if refused else "",
        error=error,
    )
    headers = {**PAGE_HEADERS, "Content-Language": language}
    return HTMLResponse(html, status_code=422 if refused else 200, headers=headers)
