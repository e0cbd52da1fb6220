"""Somebody else's authorization server, and an MCP server that takes its tokens. For tests.

Both answer on real sockets; the authorization server is authlib's, the MCP server is mcp's.
"""
