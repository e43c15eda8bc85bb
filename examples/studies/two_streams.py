"""A task of one's own: report the sign of the stream that the cue asks for."""

import numpy as np

import neuralrace as nr


def make(cue=1.0):
    """Two streams of four levels, and a one-hot cue of size `cue`."""
    levels = np.array([-1.0, -0.5, 0.5, 1.0])
    asked, one, two = (a.ravel() for a in np.meshgrid([1, 2], levels, levels, indexing="ij"))
    shown = np.stack([one, two, cue * (asked == 1), cue * (asked == 2)], axis=1)
    wanted = np.sign(np.where(asked == 1, one, two))
    return nr.Dataset({"x": shown}, {"y": wanted[:, None]}, labels={"context": asked})
