"""Lattices: Ising and Potts models."""
