"""What a person may point at in a message: found while they type, and put before the model."""
