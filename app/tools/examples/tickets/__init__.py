"""A small tool server that may be told anything twice: what was done once is not done again.

``python -m app.tools.examples.tickets`` speaks by stdio, with ``--http PORT`` by streamable HTTP.
``docs/mcp-servers.md`` says what of it every server needs that changes anything.
"""
