"""Models of rows in groups whose weights of components are drawn around global ones: topics and chains.

`model` is their base, `weights` are priors of the weights of groups, and `sticks` are the global weights.
"""
