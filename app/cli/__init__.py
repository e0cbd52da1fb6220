"""The command line: one small file per command, and nothing heavy until a command is chosen."""
