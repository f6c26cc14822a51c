"""The checked model of all nodes, made of the resolved derivatives."""
