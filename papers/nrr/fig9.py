"""NRR Fig. 9: routing with images and leaky ReLU networks."""

from __future__ import annotations

from evidence import Measure
from papers.figure import Figure, Setting, Settings, Table
from papers.nrr import fig8
from papers.nrr.image_routes import TABLES, common_settings, measure

ENOUGH = 0.25
"""K/M from which on untrained routes work in the paper."""

SETTINGS = common_settings(
    shares=Setting(
        (0.05, 0.1, 0.2, 0.25, 0.4, 0.6, 0.8),
        "K/M, share of trained routes",
        f"{TABLES}; .25 as in the caption",
        quick=(0.2, 0.4),
    ),
    methods=Setting(("cross",), "cross-entropy alone knows leaky networks", "NRR §5"),
    leak=Setting(
        0.01,
        "slope below 0 of both hidden layers; the published code adds none at one layer",
        "NRR Fig. 9, caption",
    ),
    hidden=Setting(128, "width of both hidden layers", "the authors' scripts", quick=32),
    time=Setting(7500.0, "flow time: learning rate × steps / (1 − momentum)", TABLES, quick=2000.0),
    scale=Setting(0.1, "gain of the initial weights", TABLES),
)


def compute(settings: Settings) -> Table:
    """Accuracies for permuted and for rotated inputs."""
    return measure(fig8.cells(settings, settings["leak"]), settings)


def measures(table: Table) -> tuple[Measure, ...]:
    """Accuracies, and the share of routes that is enough."""
    return fig8.measures(table, enough=ENOUGH)


FIGURE = Figure(
    name="nrr/fig9",
    title="Routing with images: leaky ReLU networks",
    states=(
        "With leaky ReLU too, trained routes are always good, and untrained ones are as good when "
        "about 25 % of the routes are trained (Fig. 9)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=fig8.draw,
    measures=measures,
)
