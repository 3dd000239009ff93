"""Data from models: exact, perfect, Gibbs, clusters."""
