"""What of LangGraph's diagnostics people are shown: no configuration, no words of exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAFE_CHECKPOINT_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id")


def public(mode: str, data: Any) -> Any:  # noqa: ANN401 - whatever a graph emits
    """Take configuration and raw errors out of what diagnostics modes carry."""
    if mode == "checkpoints":
        return _checkpoint(data)
    if mode == "tasks":
        return _task(data)
    if mode == "debug":
        payload = data["payload"]
        public = _checkpoint(payload) if data["type"] == "checkpoint" else _task(payload)
        return {**data, "payload": public}
    return data


def _checkpoint(payload: Mapping[str, Any]) -> dict[str, Any]:
    public = dict(payload)
    public["checkpoint"] = _checkpoint_ref(public.pop("config", None))
    public["parent_checkpoint"] = _checkpoint_ref(public.pop("parent_config", None))
    public["tasks"] = [_task(task) for task in payload["tasks"]]
    return public


def _checkpoint_ref(config: Any) -> dict[str, Any] | None:  # noqa: ANN401 - RunnableConfig or None
    if not config:
        return None
    return {key: config["configurable"].get(key) for key in _SAFE_CHECKPOINT_KEYS}


def _task(payload: Any) -> dict[str, Any]:  # noqa: ANN401 - one of several typed dicts
    public = dict(payload)
    if public.get("error"):
        public["error"] = "graph_failed"
    if isinstance(public.get("state"), dict) and "configurable" in public["state"]:
        public["state"] = {"configurable": _checkpoint_ref(public["state"])}
    return public
