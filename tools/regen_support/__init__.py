"""What tools/regen.py is made of."""
