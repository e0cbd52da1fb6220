"""Tools of MCP servers as the agent calls them: bounded, redacted, on record."""
