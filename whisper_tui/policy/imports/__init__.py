"""Rules of other programs, carried over where that means no more than it did there."""
