"""A person's links to MCP servers: which there are, their credentials, and how they stand."""
