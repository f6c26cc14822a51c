"""Backwards as graphs: printed from a lowering, transformed by passes, compiled by backends, traced and stored."""
