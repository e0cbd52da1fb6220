"""Traces: how long what took, and with what outcome. Nothing of what anybody said.

Off unless ``STOA_OTLP_URL`` names a collector. Spans are made here and nowhere else: libraries that
know OpenTelemetry find no provider of ours, since theirs would hold arguments and addresses.
"""
