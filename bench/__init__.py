"""Sluice and what it is compared with, side by side."""
