"""Erasures as the database has them: begun, led, looked at."""
