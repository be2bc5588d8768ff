"""Labelled arrays: rows on a grid are matched by the names of dimensions and by coordinates, not by position alone."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import calibrant
from calibrant.core.errors import InputError

DAYS, STATIONS = 30, 4


def grid(seed=0):
    rng = np.random.default_rng(seed)
    places = {"day": np.arange(DAYS), "station": list("abcd"), "region": ("station", ["n", "n", "s", "s"])}
    p = xr.DataArray(rng.random((DAYS, STATIONS)).round(2), dims=("day", "station"), coords=places)
    y = xr.DataArray(rng.random((DAYS, STATIONS)) < p.to_numpy(), dims=("day", "station"), coords=places)
    return y, p


Y, P = grid()
ROWS = Y.to_numpy().ravel(), P.to_numpy().ravel()
DAY, STATION = np.repeat(np.arange(DAYS), STATIONS), np.tile(list("abcd"), DAYS)


@pytest.mark.parametrize(
    "call",
    [
        calibrant.measure,
        calibrant.net_benefit,
        lambda y, p: calibrant.certify(y, p, max_error=0.1),
        lambda y, p: calibrant.calibration_test(y, p, rng=0),
        calibrant.cutoff_calibration_error,
        calibrant.decisions.brier_decomposition,
        lambda y, p: calibrant.ReliabilityDisplay.from_predictions(y, p, band=None).rate.tolist(),
    ],
)
def test_dimensions_may_come_in_any_order(call):
    assert call(Y, P.transpose("station", "day")) == call(*ROWS)


def test_two_stations_are_no_two_classes():
    y, p = Y.isel(station=[0, 1]), P.isel(station=[0, 1])
    assert calibrant.measure(y, p) == calibrant.measure(y.to_numpy().ravel(), p.to_numpy().ravel())
    assert calibrant.cutoff_calibration_error(y, p.T) == calibrant.cutoff_calibration_error(
        y.to_numpy().ravel(), p.to_numpy().ravel()
    )


@pytest.mark.parametrize("asked", ["station", "region", Y["station"], STATION.reshape(DAYS, STATIONS)], ids=str)
def test_groups_may_be_a_coordinate(asked):
    labels = (
        np.where(np.isin(STATION, ["a", "b"]), "n", "s") if isinstance(asked, str) and asked == "region" else STATION
    )
    found = calibrant.certify(Y, P, max_error=0.3, by=asked)
    assert found == calibrant.certify(*ROWS, max_error=0.3, by=labels)


@pytest.mark.parametrize("asked", ["day", Y["day"]], ids=str)
def test_clusters_and_weights_may_lack_dimensions(asked):
    weight = xr.DataArray([1.0, 2.0, 1.0, 3.0], dims="station", coords={"station": list("abcd")})
    found = calibrant.net_benefit(Y, P, cluster=asked, sample_weight=weight, confidence_level=0.9, threshold=0.3)
    plain = calibrant.net_benefit(
        *ROWS, cluster=DAY, sample_weight=np.tile(weight.to_numpy(), DAYS), confidence_level=0.9, threshold=0.3
    )
    assert found == plain
    assert found.clusters == DAYS


def test_one_dimension_and_classes_are_as_before():
    assert calibrant.measure(Y[:, 0], P[:, 0]) == calibrant.measure(Y[:, 0].to_numpy(), P[:, 0].to_numpy())
    both = xr.concat([1 - P[:, 0], P[:, 0]], dim="class").transpose("day", "class")
    assert calibrant.measure(Y[:, 0].astype(int), both) == calibrant.measure(Y[:, 0].to_numpy(), P[:, 0].to_numpy())


RNG = np.random.default_rng(3)
Z = xr.DataArray(RNG.normal(size=(DAYS, STATIONS)), dims=("day", "station"), coords=Y.coords)
MEMBERS = xr.DataArray(RNG.normal(size=(9, STATIONS, DAYS)), dims=("member", "station", "day"))
LINES = MEMBERS.transpose("day", "station", "member").to_numpy().reshape(-1, 9)


def test_members_are_along_the_dimension_that_outcomes_lack():
    certify = calibrant.certificates.certify_thresholds
    plain = Z.to_numpy().ravel()
    assert certify(Z, ensemble=MEMBERS, max_error=0.3) == certify(plain, ensemble=LINES, max_error=0.3)
    levels = np.arange(1, 10) / 10
    values = np.sort(LINES)
    labelled: Any = xr.DataArray(values.reshape(DAYS, STATIONS, 9), dims=("day", "station", "level"))
    found = certify(Z, quantiles=(levels, labelled), max_error=0.3)
    assert found == certify(plain, quantiles=(levels, values), max_error=0.3)
    one = certify(Z[:, 0], ensemble=MEMBERS[:, 0], max_error=0.3)  # members first: no line is taken for a row
    assert one == certify(Z[:, 0].to_numpy(), ensemble=MEMBERS[:, 0].to_numpy().T, max_error=0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrant.measure(Y, P.isel(day=0)), r"^y_prob has the dimensions \('station',\) and y_true has"),
        (lambda: calibrant.measure(Y, P.rename(day="date")), r"^y_prob has the dimensions \('date', 'station'\)"),
        (lambda: calibrant.measure(Y, P.isel(day=slice(3))), r"^y_prob has 3 places along 'day' and y_true has 30"),
        (
            lambda: calibrant.measure(Y, P.sel(station=["a", "c", "b", "d"])),
            r"^y_prob is labelled 'c' at place 1 along 'station', and y_true is labelled 'b'; .*xarray.align",
        ),
        (lambda: calibrant.certify(Y, P, max_error=0.1, by="ward"), r"^by is 'ward', which is no coordinate of y_true"),
        (
            lambda: calibrant.certificates.certify_thresholds(Z, ensemble=MEMBERS[0], max_error=0.3),
            r"^ensemble has the dimensions \('station', 'day'\) and z has",
        ),
        (
            lambda: calibrant.certificates.certify_thresholds(Z, ensemble=MEMBERS[..., :3], max_error=0.3),
            r"^ensemble has 3 places along 'day' and z has 30",
        ),
        (lambda: calibrant.measure(Y, P.where(P < 0.5)), r"^y_prob\[\d+\] is missing"),
    ],
)
def test_what_does_not_match_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
