"""A small language model for machines without an Ollama: SmolLM2, in this process.

It speaks Ollama's wire, so the service cannot tell the difference and takes its usual way.
"""
