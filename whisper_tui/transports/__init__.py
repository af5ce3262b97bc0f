"""How agents get in."""
