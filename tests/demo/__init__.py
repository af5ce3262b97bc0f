"""Tests of the scripted agent."""
