"""A tool server over stdio that starts in no time: standard library only, one request at a time.

    python -I -S stdio.py [how it is to behave …]

Its behaviour is named by its arguments: ``hang-connect``, ``hang-list``, ``slow-relist``,
``endless`` (a cursor on every page), ``exit-at-once``, ``noisy`` (prints to both outputs), ``deaf``
(heeds neither the end of its input nor SIGTERM), ``forks`` (leaves a process of its own behind),
``blank`` (prints empty lines for ever), ``forms`` (says what ``note`` takes), ``readable`` (has
resources and prompts beside its tools). When asked for these, ``mute`` does not answer, ``failing``
answers with an error, ``huge`` with more than is read, and ``dying`` ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

BEHAVIOUR = set(sys.argv[1:])
NOTES: list[str] = []
EXTRA: list[str] = []
LISTINGS: list[int] = []
PUBLISHED: list[str] = []
HEARD: list[str] = []
"""What it was asked for, in the order in which that came."""
LATER: list[str] = []
"""Lines that came while something else was waited for."""

TOOLS = (
    "note",
    "whoami",
    "environment",
    "sleep",
    "die",
    "ask",
    "announce",
    "report",
    "limits",
    "large",
    "fail",
)


NOTE = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}},
    "required": ["text"],
    "additionalProperties": False,
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any] | None:
    line = LATER.pop(0) if LATER else sys.stdin.readline()
    return json.loads(line) if line else None


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    say({"id": request["id"], "result": result})


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def listing(params: dict[str, Any]) -> dict[str, Any]:
    if "hang-list" in BEHAVIOUR:
        time.sleep(3600)
    LISTINGS.append(page := int(params.get("cursor", 0)))
    if "slow-relist" in BEHAVIOUR and len(LISTINGS) == 2:
        time.sleep(1)
    names = [f"tool-{page}"] if "endless" in BEHAVIOUR else [*TOOLS, *EXTRA]
    forms = {"note": NOTE} if "forms" in BEHAVIOUR else {}
    tools = [
        {
            "name": name,
            "description": f"Does {name}.",
            "inputSchema": forms.get(name, {"type": "object"}),
        }
        for name in names
    ]
    more = {"nextCursor": str(page + 1)} if "endless" in BEHAVIOUR else {}
    return {"tools": tools, **more}


def call(request: dict[str, Any]) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912 - one line a tool
    name = request["params"]["name"]
    arguments = request["params"].get("arguments") or {}
    match name:
        case "note":
            NOTES.append(arguments["text"])
            with Path("notes.txt").open("a", encoding="utf-8") as file:
                file.write(arguments["text"] + "\n")
            return text(json.dumps([NOTES, Path("notes.txt").read_text(encoding="utf-8")]))
        case "whoami":
            facts = {"pid": os.getpid(), "group": os.getpgrp(), "folder": str(Path.cwd())}
            return text(json.dumps({**facts, "arguments": sys.argv[1:]}))
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "sleep":
            Path("asleep").touch()
            time.sleep(arguments.get("for_seconds", 3600))
            return text("slept")
        case "die":
            os._exit(3)
        case "ask":
            return ask(arguments)
        case "announce":
            EXTRA.append("new")
            say({"method": "notifications/tools/list_changed"})
            return text("announced")
        case "publish":
            PUBLISHED.append(arguments["name"])
            say({"method": "notifications/resources/list_changed"})
            say({"method": "notifications/prompts/list_changed"})
            return text("published")
        case "heard":
            return text(json.dumps(HEARD))
        case "report":
            token = request["params"]["_meta"]["progressToken"]
            progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
            say({"method": "notifications/progress", "params": progress})
            return text(json.dumps(request["params"]["_meta"]))
        case "limits":
            import resource  # noqa: PLC0415 - nothing else needs it

            kinds = ("DATA", "NOFILE", "CORE", "FSIZE")
            found = {
                each: resource.getrlimit(getattr(resource, f"RLIMIT_{each}")) for each in kinds
            }
            return text(json.dumps(found))
        case "large":
            return text("x" * arguments["size"])
        case _:
            return {**text("it failed"), "isError": True}


def readable(request: dict[str, Any]) -> None:
    """Answer when asked for what there is to read, or for some of it."""
    method, params = request["method"], request.get("params") or {}
    if "dying" in BEHAVIOUR:
        os._exit(4)
    if "mute" in BEHAVIOUR:
        return
    if "failing" in BEHAVIOUR:
        say({"id": request["id"], "error": {"code": -32603, "message": "a secret of its own"}})
        return
    if "huge" in BEHAVIOUR:
        answer(request, {"resources": [{"uri": "x:", "name": "x" * 20_000_000}]})
        return
    page = int(params.get("cursor", 0))
    more = {"nextCursor": str(page + 1)} if "endless" in BEHAVIOUR else {}
    names = [f"page-{page}"] if "endless" in BEHAVIOUR else ["first", *PUBLISHED]
    match method:
        case "resources/list":
            kind = {"mimeType": "text/plain"}
            found = [{"uri": f"quick://{each}", "name": each, **kind} for each in names]
            answer(request, {"resources": found, **more})
        case "prompts/list":
            told = {"arguments": [{"name": "what", "required": True}]}
            prompts: list[dict[str, Any]] = [{"name": each} for each in names]
            answer(request, {"prompts": [*prompts, {"name": "told", **told}], **more})
        case "resources/read":
            read(request, params["uri"])
        case _:
            said = {"role": "user", "content": {"type": "text", "text": f"Do {params['name']}."}}
            answer(request, {"messages": [said]})


def read(request: dict[str, Any], uri: str) -> None:
    match uri.partition("://")[2]:
        case "hang":
            Path("reading").touch()
        case "die":
            os._exit(5)
        case "die-once" if not Path("died").exists():
            Path("died").touch()
            os._exit(5)
        case "environment":
            contents = {"uri": uri, "text": json.dumps(dict(os.environ))}
            answer(request, {"contents": [contents]})
        case "gone":
            say({"id": request["id"], "error": {"code": -32002, "message": "a secret of its own"}})
        case name:
            answer(request, {"contents": [{"uri": uri, "text": f"This is {name}."}]})


def ask(arguments: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": arguments.get("message", "Who?"), "requestedSchema": schema}
    say({"id": "q1", "method": "elicitation/create", "params": params})
    others: list[str] = []
    while line := sys.stdin.readline():
        reply = json.loads(line)
        if reply.get("id") == "q1":
            LATER.extend(others)
            return text(json.dumps(reply.get("result") or reply.get("error")))
        others.append(line)
    return text("nothing")


def leave_a_process() -> None:
    """One that holds the pipes and does not end by itself, like a program's own helpers."""
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)


def main() -> None:
    if "exit-at-once" in BEHAVIOUR:
        sys.exit(1)
    if "noisy" in BEHAVIOUR:
        sys.stdout.write("starting up\n")
        sys.stderr.write("a secret\n" * 100_000)
    if "blank" in BEHAVIOUR:
        while True:
            sys.stdout.write("\n" * 65536)
    if "deaf" in BEHAVIOUR:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "forks" in BEHAVIOUR:
        leave_a_process()
    if "hang-connect" in BEHAVIOUR:
        time.sleep(3600)
    while (request := hear()) is not None:
        handle(request)
    if "deaf" in BEHAVIOUR:
        time.sleep(3600)


def handle(request: dict[str, Any]) -> None:
    HEARD.append(request.get("method", ""))
    if "id" not in request or "method" not in request:
        return
    match request["method"]:
        case "initialize":
            capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
            if "readable" in BEHAVIOUR:
                capabilities |= {"resources": {"listChanged": True}, "prompts": {}}
            about = {"name": "quick", "version": "1"}
            version = request["params"]["protocolVersion"]
            answer(
                request,
                {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about},
            )
        case "tools/list":
            answer(request, listing(request.get("params") or {}))
        case "tools/call":
            answer(request, call(request))
        case "resources/list" | "resources/read" | "prompts/list" | "prompts/get":
            readable(request)
        case "ping":
            answer(request, {})
        case _:
            say({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main()
