"""OAuth 2.1 towards MCP servers: a person lets Stoa act for them at a server of other people's."""
