"""The generator: derivative formulas in YAML become functional backward nodes, checked and then written as
text.

It reads the files of an installed torch and never imports torch itself.
"""
