"""Whatever is sent to a door: it answers or closes, and the supervisor goes on."""
