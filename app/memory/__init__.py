"""What the agent keeps about a person: remembering, recalling, and what people do with it."""
