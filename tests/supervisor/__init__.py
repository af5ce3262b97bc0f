"""Tests of the queue, the pool, the journal and the keepers."""
