"""Which gated network is this ReLU network? Its activity, and how closely a candidate follows."""

from neuralrace.reln.activity import Activity, Switches, activity
from neuralrace.reln.certificate import Certificate, certify, evidence
from neuralrace.reln.horizon import Horizons, Stages, copied_gates, horizons
from neuralrace.reln.pictures import draw_activity
from neuralrace.reln.shares import Shares, subsets

__all__ = [
    "Activity",
    "Certificate",
    "Horizons",
    "Shares",
    "Stages",
    "Switches",
    "activity",
    "certify",
    "copied_gates",
    "draw_activity",
    "evidence",
    "horizons",
    "subsets",
]
