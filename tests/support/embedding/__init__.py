"""A real embedding model, served as Ollama would, and facts to measure recall with."""

from tests.support.embedding.facts import FACTS, Fact
from tests.support.embedding.server import EMBEDDING_MODEL, EmbeddingServer

__all__ = ["EMBEDDING_MODEL", "FACTS", "EmbeddingServer", "Fact"]
