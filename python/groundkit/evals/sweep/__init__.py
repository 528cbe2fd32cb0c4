"""Compare many systems in many metrics on many datasets in one call, with p-values adjusted for all that was compared.

Every comparison over the same queries shares one stream of resamples, so that a row of the result equals the single
`paired_bootstrap` call with the same arguments, bit for bit, at a fraction of its cost. Beside the percentile interval
each row has a sign-flip test, a paired t-test, and p-values adjusted for the size of its family.
"""

from groundkit.evals.sweep.comparison import SweepWarning, compare_systems
from groundkit.evals.sweep.models import AverageRow, Family, Missing, SweepRow, Test, Verdict
from groundkit.evals.sweep.multiplicity import benjamini_hochberg, holm
from groundkit.evals.sweep.result import SweepResult

__all__ = [
    "AverageRow",
    "Family",
    "Missing",
    "SweepResult",
    "SweepRow",
    "SweepWarning",
    "Test",
    "Verdict",
    "benjamini_hochberg",
    "compare_systems",
    "holm",
]
