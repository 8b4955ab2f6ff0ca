"""Passages to vectors."""
