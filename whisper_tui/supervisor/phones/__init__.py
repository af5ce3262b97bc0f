"""Yes and no from paired phones: their keys, their signatures, and the window in which the desk withdraws a yes."""
