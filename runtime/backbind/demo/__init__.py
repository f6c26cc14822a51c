"""The demonstration: a small real network on real data, trained as usual and under capture, and its backward taken out
of the engine as operators and as a graph.
"""
