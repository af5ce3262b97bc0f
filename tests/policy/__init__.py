"""Tests of the judgement."""
