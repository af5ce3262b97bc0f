"""Tests of where the directories are and what the configuration file says."""
