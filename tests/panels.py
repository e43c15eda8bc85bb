"""The panels of a picture."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def panels(figure: Figure) -> dict[Axes, str]:
    """Every panel of a picture with its title, or its place where it has none.

    Colour bars are no panels, nor are axes that hold words alone.
    """
    shown = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    each = {}
    for place, ax in enumerate(ax for ax in shown if ax.axison or ax.has_data()):
        titles = (ax.get_title("left"), ax.get_title(), ax.get_title("right"))
        each[ax] = " ".join(" ".join(titles).split()) or f"panel {place + 1}"
    return each
