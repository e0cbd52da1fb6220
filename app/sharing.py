"""From the service's settings to the pools and to everybody's limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.settings import SettingsError
from tenancy.scheduler.pools import PoolDeclaration

if TYPE_CHECKING:
    from app.settings import PoolSettings, Settings
    from tenancy.scheduler.limits import Limits

_DEFAULT_POOL = "default"
_EMBEDDING_POOL = "embedding"
_EMBEDDING_CONTEXT = 2048
_EMBEDDING_OUTPUT = 1
_DEFAULT_TAG = "latest"


def full_name(model: str) -> str:
    """A model's name as its server has it: with the tag."""
    return model if ":" in model else f"{model}:{_DEFAULT_TAG}"


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model that people may speak with, and the pools that have it."""

    model: str
    """By its full name, with the tag."""
    is_default: bool
    context: int
    """Tokens of its window, as its calls are pinned to."""
    output: int
    """Most tokens of one answer."""
    images: bool | None
    """Whether it reads images; None: as its server says."""
    provider: str | None
    """Whose it is in the catalogue of prices; None: nobody's, it costs time."""
    pools: tuple[PoolDeclaration, ...]

    @property
    def prompt_tokens(self) -> int:
        """What its window leaves for the prompt."""
        return self.context - self.output


def default_limits(settings: Settings) -> Limits:
    """What a person may use for whom no plan and no limit of their own says otherwise."""
    return {
        "weight": 1,
        "running": settings.max_running_per_user,
        "queued": settings.max_queued_per_user,
        "steps_per_run": settings.recursion_limit,
        "tokens_per_day": settings.tokens_per_day,
        "tokens_per_month": settings.tokens_per_month,
        "requests_per_minute": settings.requests_per_minute,
        "threads": settings.max_threads_per_user,
        "memory_bytes": settings.memory_bytes_per_user,
        "streams": settings.max_streams_per_user,
    }


def retention_times(settings: Settings) -> dict[str, float | None]:
    """For how many seconds each kind of a person's data is kept; None: until they delete it.

    Of runs, their logs and earlier states, from a run's end; of conversations, from the last time
    that anything happened in them. Approvals go with their conversation.
    """
    return {
        "conversations": settings.thread_idle_seconds or None,
        "message_pieces": settings.delta_retention_seconds,
        "events": settings.event_retention_seconds or None,
        "runs": settings.run_retention_seconds or None,
        "checkpoints": settings.checkpoint_retention_seconds or None,
        "approvals": None,
        "memories": None,
        "connections": None,
        "usage": settings.usage_retention_seconds or None,
        "audit": settings.audit_retention_seconds or None,
    }


def declared_pools(settings: Settings) -> list[PoolDeclaration]:
    """The pools that the settings name.

    Raises:
        SettingsError: they contradict each other, or none has the default model, or the one that
            memories are compared by.
    """
    if not settings.pool:
        return _pools_of_one_server(settings)
    if "ollama_url" in settings.model_fields_set or "ollama_capacity" in settings.model_fields_set:
        raise SettingsError(
            "STOA_OLLAMA_URL and STOA_OLLAMA_CAPACITY mean the only pool there is: name it in a"
            " [[pool]] of stoa.toml instead, beside the others."
        )
    pools = [_declaration(settings, each) for each in settings.pool]
    _require_distinct(pools)
    _require_agreement(pools)
    _require_one_account(settings)
    models = {pool.model for pool in pools}
    if full_name(settings.model) not in models:
        raise SettingsError(f"STOA_MODEL: no [[pool]] has the default model {settings.model}.")
    if settings.embedding_model and full_name(settings.embedding_model) not in models:
        raise SettingsError(
            f"STOA_EMBEDDING_MODEL: no [[pool]] has the model {settings.embedding_model}."
        )
    return pools


def default_pool(settings: Settings) -> PoolDeclaration:
    """The first pool with the default model.

    Raises:
        SettingsError: as ``declared_pools``.
    """
    model = full_name(settings.model)
    return next(pool for pool in declared_pools(settings) if pool.model == model)


def chat_models(settings: Settings) -> tuple[ChatModel, ...]:
    """The models that people may choose from, the default one first; not the embedding model.

    Raises:
        SettingsError: as ``declared_pools``.
    """
    pools = declared_pools(settings)
    default = full_name(settings.model)
    said = {each.name: each for each in settings.pool}
    names = dict.fromkeys([default, *(pool.model for pool in pools)])
    if settings.embedding_model and full_name(settings.embedding_model) != default:
        del names[full_name(settings.embedding_model)]
    models = []
    for name in names:
        own = tuple(pool for pool in pools if pool.model == name)
        first = said.get(own[0].pool)
        images = first.images if first is not None else None
        if images is None and name == default:
            images = settings.model_images
        provider = first.provider if first is not None else None
        models.append(
            ChatModel(name, name == default, own[0].context, own[0].output, images, provider, own)
        )
    return tuple(models)


def _pools_of_one_server(settings: Settings) -> list[PoolDeclaration]:
    """The default model's, and the embedding model's: a short call does not wait for a long one."""
    url = str(settings.ollama_url).rstrip("/")
    default = PoolDeclaration(
        pool=_DEFAULT_POOL,
        server=url,
        url=url,
        server_capacity=None,
        model=full_name(settings.model),
        capacity=settings.ollama_capacity,
        context=settings.model_context,
        output=settings.model_output,
    )
    embedding = full_name(settings.embedding_model or settings.model)
    if embedding == default.model:
        return [default]
    return [
        default,
        replace(
            default,
            pool=_EMBEDDING_POOL,
            model=embedding,
            context=_EMBEDDING_CONTEXT,
            output=_EMBEDDING_OUTPUT,
        ),
    ]


def _declaration(settings: Settings, pool: PoolSettings) -> PoolDeclaration:
    url = str(pool.url).rstrip("/")
    return PoolDeclaration(
        pool=pool.name,
        server=url,
        url=url,
        server_capacity=pool.server_capacity,
        model=full_name(pool.model or settings.model),
        capacity=pool.capacity,
        context=pool.context or settings.model_context,
        output=pool.output or settings.model_output,
    )


def _require_distinct(pools: list[PoolDeclaration]) -> None:
    for number, pool in enumerate(pools):
        for other in pools[:number]:
            if pool.pool == other.pool:
                raise SettingsError(f"[[pool]]: two pools have the name {pool.pool}.")
            if (pool.server, pool.model) == (other.server, other.model):
                raise SettingsError(
                    f"[[pool]]: {other.pool} and {pool.pool} are the same model on the same"
                    " server. Make it one pool with the capacity of both."
                )


def _require_agreement(pools: list[PoolDeclaration]) -> None:
    for number, pool in enumerate(pools):
        for other in pools[:number]:
            same_window = (pool.context, pool.output) == (other.context, other.output)
            if pool.model == other.model and not same_window:
                raise SettingsError(
                    f"[[pool]]: {other.pool} and {pool.pool} have the same model, but another"
                    " `context` or `output`. A call may go to either."
                )
            if pool.server == other.server and pool.server_capacity != other.server_capacity:
                raise SettingsError(
                    f"[[pool]]: {other.pool} and {pool.pool} are on one server, but say that it"
                    " has another `server_capacity`."
                )


def _require_one_account(settings: Settings) -> None:
    """What is said of a model is said of it, whichever of its pools a call goes to."""
    for number, pool in enumerate(settings.pool):
        for other in settings.pool[:number]:
            same_model = full_name(pool.model or settings.model) == full_name(
                other.model or settings.model
            )
            if same_model and (pool.images, pool.provider) != (other.images, other.provider):
                raise SettingsError(
                    f"[[pool]]: {other.name} and {pool.name} have the same model, but another"
                    " `images` or `provider`. A call may go to either."
                )
