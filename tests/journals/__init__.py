"""Journals and states that earlier versions wrote, and the shape of events by the number of their format."""
