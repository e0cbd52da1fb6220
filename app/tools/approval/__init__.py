"""Which calls of tools need their person's word first."""
