"""The most that the explorer takes on of what a study says."""

from __future__ import annotations

from collections.abc import Mapping

LIMITS: Mapping[str, float] = {
    "width": 2048,
    "layers": 4,
    "nodes": 160,
    "edges": 600,
    "gatings": 8,
    "pathways": 64,
    "steps": 50_000,
    "seeds": 8,
    "key": 2**31 - 1,
    "longest": 1e6,
    "start": 100.0,
}
"""Neurons of a hidden layer or a pathway; hidden layers; nodes and edges of a graph; candidate
gatings; pathways of a gating; steps of training; networks that are trained; the largest key of
random numbers; how long a race is followed, in units of one over its largest strength; and the
largest initial weights, since from larger ones a race takes for ever to be solved.
"""
