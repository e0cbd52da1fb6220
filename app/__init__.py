"""The service: HTTP surface, the life of a run, the agent, models and tools."""
