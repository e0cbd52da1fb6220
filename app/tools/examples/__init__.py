"""Tool servers to read, and to run: programs of their own, which nothing of the service imports."""
