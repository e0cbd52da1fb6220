"""Benchmarks: ratios within one run on one machine, never asserts in tests.

``overhead``  what the service costs on top of a bare LangGraph loop
``rls``       what the policies cost the hot queries
``takeover``  how soon another worker goes on when one is gone
``waiting``   what runs cost that wait for their people
``chaos``     whether anything breaks while everything fails
"""
