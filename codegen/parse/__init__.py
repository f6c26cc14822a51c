"""Text with positions: every parsed thing knows where in which file it stands, so that a message can point at
it.
"""
