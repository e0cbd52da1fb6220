"""The only way to the model servers."""
