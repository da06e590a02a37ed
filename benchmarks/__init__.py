"""Benchmarks: programs that measure and print; none is a test."""
