"""What the agent can do beside talking: calls of tools, and what stopping means for them."""
