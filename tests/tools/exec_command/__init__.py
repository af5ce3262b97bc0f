"""Tests of ExecCommand and its task tools."""
