"""Fixtures for tests of publishers."""
