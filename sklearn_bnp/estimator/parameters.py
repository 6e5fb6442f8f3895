"""Parameters and attributes that several estimators have: what values they may take, and their text.

Each estimator lists all parameters in its own ``__init__``, as scikit-learn wants it. In its docstring, a
line ``$random_state`` stands for the text below, which `with_shared_text` puts in its place. In the
docstrings of ``fit`` and ``partial_fit``, a line ``$raises`` stands for a section.
"""

from __future__ import annotations

import inspect
import re
from numbers import Integral, Real
from string import Template
from textwrap import indent

from sklearn.utils._param_validation import Interval, StrOptions

from ..likelihood.limits import NOT_NEGATIVE, POPULATION, POSITIVE

COUNT = Interval(Integral, 1, None, closed="left")
# Half-lives are numbers of batches; with shorter ones, a model would know little but the last batch.
HALF_LIFE = Interval(Real, 0.5, None, closed="left")

# Constraints of the parameters that all estimators have, and of those with a learner.
COMMON = {
    "observation": "no_validation",  # here and in proposals, our own messages say more
    "max_components": [COUNT, None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
OF_LEARNERS = {
    **COMMON,
    "n_components": [COUNT],
    "weight_concentration_prior": [POSITIVE, None],
    "proposals": "no_validation",
    "learning_method": [StrOptions({"memoized", "full", "stochastic"})],
    "batch_size": [COUNT, None],
    "n_batches": [COUNT, None],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "n_init": [COUNT],
    "warm_start": ["boolean"],
    "memoize": ["boolean"],
    "max_batches": [Interval(Integral, 2, None, closed="left"), None],
    "learning_decay": [Interval(Real, 0.5, 1, closed="right")],
    "learning_offset": [NOT_NEGATIVE],
    "total_samples": [POPULATION, None],
    "random_state": ["random_state"],
}

_TEXT = """
n_components : int, default=$default
    Number of $components to start from; the number is then learned. If ``proposals`` is None, it stays the
    number of $components.
max_components : int, default=$default
    The greatest number of $components that a fit may start from, and that births may lead to. There is no
    limit if None.
proposals : tuple of str or Proposal, or None, default=$default
    The ways in which the number of $components may change. If None, it never changes. Settings are
    given by objects in place of these names:
    $proposals.
learning_method : {"memoized", "full", "stochastic"}, default=$default
    Memoized inference (Hughes 2016, Alg. 3.3), inference with all data in one batch (Alg. 3.1), or
    stochastic inference (Alg. 3.2). The stochastic method makes no proposals.
n_batches : int, default=$default
    Number of batches, in place of ``batch_size``. There are no more batches than $units.
max_iter : int, default=$default
    The greatest number of laps: passes through all $units. One lap is always made: 0 gives the same result as
    1, but no warning that the fit has not converged. With the stochastic method, 0 makes only the last lap,
    which is exact.
tol : float, default=$default
    A fit has converged when a lap raises the ELBO by less than this, in nats per $entry, and no proposal is
    under way. (A nat is the unit of natural logarithms.) With fewer than a million ${entry}s, n of them, laps
    are cheap and the fit goes on for longer: until a lap raises the ELBO by less than
    ``tol * n ** 2 / 1_000_000`` nats in all, or by less than 0.05 nats.
warm_start : bool, default=$default
    Whether `fit` goes on from the last call of `fit`. If the data and the parameters are the same, it goes
    on as if that call had not ended: 4 laps and then 26 more are 30 laps, to the last bit. Only ``max_iter``,
    ``tol``, ``n_jobs`` and ``verbose`` may differ for that. Otherwise it starts from the present
    $components: with their units, their prior, and their order if that was given. The statistics of all
    batches are kept for this.
memoize : bool, default=$default
    Whether `partial_fit` keeps the statistics of each batch, so that a batch that is seen again replaces
    them. Set it to False for a stream that never ends: memory then does not grow.
max_batches : int, default=$default
    Number of batches that `partial_fit` remembers, two or more: a sliding window. When a new batch would be
    one too many, the oldest one is forgotten exactly, as by `forget`. The data of `fit` count as one batch.
    All batches are remembered if None.
half_life : float, default=$default
    How fast `partial_fit` with ``memoize=False`` forgets: the number of batches, 0.5 or more, after which a
    batch counts half. A batch that came t batches ago has the weight ``0.5 ** (t / half_life)``. All batches
    count alike if None.
learning_decay : float, default=$default
    Exponent, above 0.5 and at most 1, of the learning rate of the stochastic method, which is
    ``(learning_offset + t) ** -learning_decay`` at step t.
learning_offset : float, default=$default
    Offset of that learning rate, 0 or more: with a greater one the first steps are smaller.
total_samples : int, default=$default
    For the stochastic method: the number of $units in the population of which `partial_fit` sees samples. If
    None, it is the number of $units seen so far.
random_state : int, RandomState instance or None, default=$default
    Seed of the initialisation, of the order of batches and of the proposals.
n_jobs : int, default=$default
    Number of threads. None is one thread, and -1 all cores. Results do not depend on it. A process that
    was forked after several threads have been used has one thread.
verbose : int, default=$default
    If 1, show a line per lap on standard error: its number, the number of $components, the ELBO,
    seconds, and the proposals that were accepted and refused. Lines go through the logger ``sklearn_bnp``,
    whose handlers may write them elsewhere (:doc:`/summaries`).
component_ids_ : ndarray of int of shape (`n_components_`,)
    Lasting names of the $components, in the order of the other attributes. In a stream, the positions of
    $components change with their weights, but their names stay. One that is split or merged gets a new name.
    If one is deleted, $heirs.
lower_bounds_ : list of float
    The ELBO after each lap; in a stream after the last 1000 of them.
elbo_terms_ : dict
    Terms of the ELBO: data, entropy, allocation.
history_ : list of Lap
    A record of each lap, or of the last 1000 in a stream: lap, n_components, lower_bound, seconds,
    proposal_seconds, tried, accepted, trials, left_alone. ``trials`` are records of the changes that were
    tried, of the last 2000 in all: kind, components, gain, and the verdict; see :doc:`/summaries`.
n_iter_ : int
    Number of laps made.
converged_ : bool
    Whether the fit converged.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of features seen during fit, if they were all strings.
"""
# Name -> its lines: those up to the next one that is not indented.
_TEXTS = {text.split(" ", 1)[0]: text for text in re.split(r"\n(?=\w)", _TEXT.strip())}

# Sections of methods. The docstring of a method may go on with their last entry.
_RAISES = """
Raises
------
TypeError
    If X is sparse and the likelihood takes dense rows.
FloatingPointError
    If a result would not be finite. As after all errors, the estimator is as it was before the call.
ValueError
    If a parameter has a value that it cannot have, or does not go with another one; if X holds infinite
    values, or NaN where the likelihood takes none; if a column has no value at all; if a weight is negative,
    or all are 0."""
_OTHER_BATCH = """
    If the columns, or ``observation``, are not those of the earlier calls."""
_OF_DATA = """
UserWarning
    If the data or their weights look wrong for the model, such as a few values of a column that are so far
    out that all others look alike beside them. :doc:`/warnings` lists all warnings, and what to do."""
_WARNS = """
Warns
-----"""
_NOT_CONVERGED = """
ConvergenceWarning
    If `fit` has made ``max_iter`` laps without having converged."""
_TEXTS |= {
    "raises": _RAISES.strip(),
    "raises_later": (_RAISES + _OTHER_BATCH).strip(),
    "warns": (_WARNS + _NOT_CONVERGED + _OF_DATA).strip(),
    "warns_later": (_WARNS + _OF_DATA).strip(),
}


def with_shared_text(**words):
    """Class decorator: each line ``$name`` of the docstring becomes the shared text of this name.

    In the text, ``$default`` is the default of the parameter, and other words with a dollar are ``words``.
    The docstrings of the methods ``fit`` and ``partial_fit`` are filled in too.
    """

    def fill(cls):
        parameters = inspect.signature(cls.__init__).parameters

        def shared(found):
            margin, name = found.groups()
            default = parameters[name].default if name in parameters else None
            text = Template(_TEXTS[name]).substitute(words, default=_literal(default))
            return indent(text, margin)

        for documented in (cls, cls.fit, cls.partial_fit):
            if documented.__doc__ is not None:  # as it is under python -OO
                documented.__doc__ = re.sub(r"(?m)^( *)\$(\w+)$", shared, documented.__doc__)
        return cls

    return fill


def _literal(value):
    """A default as it is written in docstrings, with strings in double quotes."""
    return repr(value).replace("'", '"')
