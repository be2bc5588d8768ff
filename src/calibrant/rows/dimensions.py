"""Labelled arrays of several dimensions (xarray's): rows on a grid, matched by the names of dimensions.

Nothing here imports xarray: what has dimensions, coordinates and can be transposed was made by it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant.core.errors import InputError
from calibrant.core.voices import Argument, Phrase
from calibrant.rows.labels import same_label


class Columns(NamedTuple):
    """What says something of each row."""

    y_true: Any
    y_prob: Any
    sample_weight: Any = None
    by: Any = None
    cluster: Any = None


def is_labelled(values: Any) -> bool:
    """Whether values are a labelled array, whose dimensions have names."""
    return hasattr(values, "dims") and hasattr(values, "coords") and hasattr(values, "broadcast_like")


def are_on_a_grid(y_true: Any, y_prob: Any) -> bool:
    """Whether rows are the places of a grid: outcomes of two dimensions or more, with names, and forecasts likewise."""
    return is_labelled(y_true) and is_labelled(y_prob) and y_true.ndim > 1


def laid_out(y_true: Any, y_prob: Any, *, sample_weight: Any = None, by: Any = None, cluster: Any = None) -> Columns:
    """Return one value per row where rows are on a grid, matched by dimension and coordinates; all else as it came.

    Weights, groups and clusters may lack dimensions, along which they are then the same, and groups and clusters may be
    the name of a dimension or coordinate of the outcomes.
    """
    given = Columns(y_true, y_prob, sample_weight, by, cluster)
    if not are_on_a_grid(y_true, y_prob):
        return given
    found = {}
    for name, values in given._asdict().items():
        if name in ("by", "cluster") and isinstance(values, str):
            values = _named(y_true, values, name)
        found[name] = _flat(y_true, values, name) if is_labelled(values) else _in_shape(y_true, values)
    return Columns(**found)


def _named(y_true: Any, name: str, argument: str) -> Any:
    if name not in y_true.coords:
        known = ", ".join(str(each) for each in y_true.coords) or "none"
        raise InputError(
            Phrase("is {name!r}, which is no coordinate of {outcome}", name=name, outcome=Argument("y_true")),
            argument=argument,
            value=name,
            remedy=f"its coordinates are: {known}",
        )
    return y_true[name]


def _flat(y_true: Any, values: Any, name: str) -> Any:
    """Return a labelled array's values in the order of the outcomes' dimensions."""
    whole = name in ("y_true", "y_prob")
    if not set(values.dims) <= set(y_true.dims) or (whole and set(values.dims) != set(y_true.dims)):
        raise InputError(
            Phrase(
                "has the dimensions {dims} and {outcome} has {others}",
                dims=values.dims,
                outcome=Argument("y_true"),
                others=y_true.dims,
            ),
            argument=name,
            remedy="select or average so that both have the same; of a grid, classes are judged one at a time",
        )
    for dim in values.dims:
        _check_places(y_true, values, name, dim)
    spread = values if set(values.dims) == set(y_true.dims) else values.broadcast_like(y_true)
    return spread.transpose(*y_true.dims).to_numpy().ravel()


def with_members(z: Any, values: Any, name: str) -> tuple[Any, Any]:
    """Return outcomes one by one, and a line of members or quantiles for each, where both are labelled.

    Members are along the one dimension that the outcomes lack, wherever it stands.
    """
    if not is_labelled(z) or not is_labelled(values):
        return z, values
    beside = [dim for dim in values.dims if dim not in z.dims]
    if len(beside) != 1 or len(values.dims) != len(z.dims) + 1:
        raise InputError(
            Phrase("has the dimensions {dims} and {z} has {others}", dims=values.dims, z=Argument("z"), others=z.dims),
            argument=name,
            remedy="pass the dimensions of the outcomes, and one more for the members",
        )
    for dim in z.dims:
        _check_places(z, values, name, dim, of="z")
    return z.to_numpy().ravel(), values.transpose(*z.dims, *beside).to_numpy().reshape(z.size, -1)


def _check_places(y_true: Any, values: Any, name: str, dim: Any, of: str = "y_true") -> None:
    """Refuse other places along a dimension: values would be paired with those of another day or station."""
    if values.sizes[dim] != y_true.sizes[dim]:
        raise InputError(
            Phrase(
                "has {count:,} places along {dim!r} and {outcome} has {other:,}",
                count=values.sizes[dim],
                dim=dim,
                outcome=Argument(of),
                other=y_true.sizes[dim],
            ),
            argument=name,
            remedy="bring both to the same places, as xarray.align(..., join='inner') does",
        )
    first, other = y_true.indexes.get(dim), values.indexes.get(dim)
    if first is None or other is None or first.equals(other):
        return
    pairs = enumerate(zip(first, other, strict=True))
    place, labels = next(((k, pair) for k, pair in pairs if not same_label(*pair)), (0, (first[0], other[0])))
    raise InputError(
        Phrase(
            "is labelled {own!r} at place {place} along {dim!r}, and {outcome} is labelled {label!r}",
            own=labels[1],
            place=place,
            dim=dim,
            outcome=Argument(of),
            label=labels[0],
        ),
        argument=name,
        remedy="bring both to the same places, as xarray.align(..., join='inner') does",
    )


def _in_shape(y_true: Any, values: Any) -> Any:
    """Return an array of the outcomes' very shape one by one; all else as it came."""
    shape = getattr(values, "shape", None)
    return values.reshape(-1) if shape == y_true.shape and hasattr(values, "reshape") else values
