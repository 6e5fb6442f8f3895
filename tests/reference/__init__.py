"""Slow, obvious NumPy twins of what the package computes.

They are written from the formulas of the thesis (Hughes 2016) and of textbooks, and share no code
with the package: they go through rows and components one at a time, factorise each matrix by
itself, and keep every variational factor explicit where the package has summed it away.
"""
