"""Bytes and their forms: digests, signatures, canonical JSON, names, and the types of fields."""
