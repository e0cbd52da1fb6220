"""What an operator asks for on the command line: states, ids, counts and times, nobody's words."""
