"""Whether the service is able to work, told plainly: its parts, and how each stands."""
