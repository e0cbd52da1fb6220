"""``stoa bench fairness``: how evenly people share a model, and how long a light user waits."""
