"""A model service on the loopback that follows a script, in the wire format of whichever client asks."""
