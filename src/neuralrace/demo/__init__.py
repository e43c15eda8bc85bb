"""The main job: from a task and candidate gatings to a certificate, and a report on it."""

from neuralrace.demo.arc import Arc, arc
from neuralrace.demo.main import Demo, demo

__all__ = ["Arc", "Demo", "arc", "demo"]
