"""101 motion capture sequences in 20 batches: from K = 1 against 100 blocks (thesis Sec. 6.6.3).

Needs SKLEARN_BNP_DATA. Autoregressive states at default settings.

Target: the two bounds within 1 % of each other.

    python -m tests.benchmarks.mocap_amc12
"""

from __future__ import annotations

from . import hmm_runs, report
from .chains import mocap_amc12


def main() -> None:
    args = hmm_runs.parser(__doc__, seeds=1, starts=[1, 100], batches=[20]).parse_args()
    limits = report.start("mocap_amc12", args.threads)
    data = mocap_amc12()
    made = hmm_runs.run_settings(args, lambda seed: data, observation="autoregressive")
    bounds = [report.median(r.model.lower_bound_ for r in runs) for runs in made.values()]
    gap = (max(bounds) - min(bounds)) / abs(max(bounds))
    report.print_targets([("gap of the bounds", f"{100 * gap:.2f} %", "<= 1 %", gap <= 0.01)])
    limits.unregister()


if __name__ == "__main__":
    main()
