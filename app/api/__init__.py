"""HTTP in and out: who asks, what they may send, what they get. No SQL here."""
