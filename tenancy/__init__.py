"""The ground floor: who is asking, and what that makes visible, allowed and fair.

Nothing here knows of web frameworks, graphs or tools, and nothing here imports ``app``.
"""
