"""What operators see and set, over HTTP and by command, on a real database."""
