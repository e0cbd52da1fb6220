"""Tool servers that are child processes: kept apart, limited, and ended with all they started."""
