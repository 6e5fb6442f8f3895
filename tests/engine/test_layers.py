"""A dictionary in layers does what a dictionary does, and copies do not follow each other."""

import numpy as np

from sklearn_bnp.engine.layers import Layers


def test_layers_are_a_dictionary():
    rng = np.random.default_rng(0)
    for _ in range(20):
        pairs = [(Layers(), {})]
        for _ in range(400):
            layers, plain = pairs[rng.integers(len(pairs))]
            key, value = int(rng.integers(200)), float(rng.random())
            action = rng.integers(12)
            if action == 0 and len(pairs) < 4:
                pairs.append((layers.copy(), dict(plain)))
            elif action == 1 and key in plain:
                del layers[key], plain[key]
            else:
                layers[key] = plain[key] = value
            for one, other in pairs:
                assert len(one) == len(other)
                assert list(one.items()) == list(other.items())


def test_values_may_be_set_while_keys_are_gone_through():
    layers = Layers(dict.fromkeys(range(10), 0))
    for i in range(10, 70):
        layers[i] = 0
    for i in layers:
        layers[i] += 1
    assert dict(layers) == dict.fromkeys(range(70), 1)


def test_copies_of_many_entries_share_them():
    """A copy holds a few entries of its own, however many there are."""
    layers, most = Layers(), 0
    for i in range(5000):
        layers = layers.copy()
        layers[i] = i
        most = max(most, len(layers._upper))
    assert len(layers) == 5000 and most <= 75
