"""Chunks, question and template back out of a prompt as sent."""
