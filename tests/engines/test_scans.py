"""Sources of rows give what arrays give, with few scans and bounded fetches; groups share their scans."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from brute_force import rows
from hypothesis import given
from hypothesis import strategies as st
from row_sources import GroupedToyEngine, ToyEngine, array_rows, distributions
from scan_cases import FORECASTS, KINDS, QUESTIONS, SIZE, answer, outcomes, same

import calibrant
from calibrant import Cells, Tally
from calibrant.rows import refinement
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.groups import by_group

FEW = 300


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORECASTS)
class TestSameAnswers:
    def test_as_a_tally_of_all_rows_gives(self, name, kind):
        y, w = outcomes(FORECASTS[name], kind)
        engine = ToyEngine(y, FORECASTS[name], w)
        for question, ask in QUESTIONS.items():
            same(ask(engine.unasked()), answer(name, kind, question))

    def test_in_bounded_memory(self, name, kind):
        y, w = outcomes(FORECASTS[name], kind)
        given = ToyEngine(y, FORECASTS[name], w, fetch_limit=FEW)
        for question in (
            "cutoff",
            "worst interval",
            "quantile bins",
            "adaptive",
            "normal",
            "decision",
            "saving",
            "saving at a threshold",
        ):
            engine = given.unasked()
            same(QUESTIONS[question](engine), answer(name, kind, question))
            assert max(engine.fetched, default=0) <= FEW
            assert len(engine.scans) <= 6


@pytest.mark.parametrize("method", ["paper", "exact"])
def test_methods_for_unit_weights_agree_too(method):
    y, _ = outcomes(FORECASTS["uniform"], "plain")
    mine = calibrant.certify(ToyEngine(y, FORECASTS["uniform"]), max_error=0.1, method=method)
    same(mine.to_dict(), calibrant.certify(y, FORECASTS["uniform"], max_error=0.1, method=method).to_dict())


def test_few_rows_are_judged_as_in_memory_even_where_coins_are_tossed():
    y, _ = outcomes(FORECASTS["uniform"], "plain")
    engine = ToyEngine(y, FORECASTS["uniform"])
    same(
        calibrant.certify(engine, max_error=0.01).to_dict(),
        calibrant.certify(y, FORECASTS["uniform"], max_error=0.01).to_dict(),
    )
    assert engine.scans == ["histogram", "fetch"]
    same(calibrant.measure(engine).to_dict(), calibrant.measure(y, FORECASTS["uniform"]).to_dict())


def test_ordinary_data_take_one_histogram_and_one_small_fetch():
    forecast = distributions(200_000)["uniform"]
    y, _ = outcomes(forecast, "plain")
    engine = ToyEngine(y, forecast)
    calibrant.certify(engine, max_error=0.05)
    assert engine.scans == ["histogram", "fetch"]
    assert engine.fetched[0] < 2_000


def test_forecasts_that_repeat_are_never_fetched():
    engine = ToyEngine(*outcomes(FORECASTS["rounded"], "plain")[:1], FORECASTS["rounded"], tally_limit=0)
    calibrant.smooth_calibration_error(engine)
    assert engine.scans == ["histogram"]


def test_any_number_of_parts_gives_the_same():
    y, w = outcomes(FORECASTS["uniform"], "weights")
    found = [
        calibrant.certify(ToyEngine(y, FORECASTS["uniform"], w, parts=parts), max_error=0.1).to_dict()
        for parts in (1, 7, 400)
    ]
    same(found[1], found[0])
    same(found[2], found[0])


@pytest.mark.usefixtures("as_if_large")
class TestTooManyForecasts:
    def engine(self, kind="plain"):
        y, w = outcomes(FORECASTS["uniform"], kind)
        return ToyEngine(y, FORECASTS["uniform"], w, tally_limit=10), Tally.from_arrays(
            y, FORECASTS["uniform"], sample_weight=w
        )

    def test_is_refused_with_count_limit_and_remedy(self, monkeypatch):
        monkeypatch.setattr(refinement, "_TALLY_GRID", Grid(13, 0.0, 1.0))
        message = (
            r"^this needs every distinct forecast, and [\d,]+ of 3,000 rows would have to be fetched to tell them "
            r"apart, above the limit of 10; raise the limit \(tally_limit\), round the forecasts or take a sample, or "
            r"use certificates.bracket for an answer with known ends$"
        )
        for ask in (
            calibrant.smooth_calibration_error,
            calibrant.decisions.murphy_curve,
            calibrant.decisions.risk_gap_curve,
        ):
            with pytest.raises(ValueError, match=message):
                ask(self.engine()[0])
        with pytest.raises(ValueError, match=message):
            calibrant.calibration_test(self.engine()[0], method="exact")

    @pytest.mark.parametrize("kind", ["plain", "weights", "fractions"])
    def test_measure_says_what_is_exact_and_what_is_not(self, kind, monkeypatch):
        monkeypatch.setattr(refinement, "_TALLY_GRID", Grid(13, 0.0, 1.0))
        engine, tally = self.engine(kind)
        found, exact = calibrant.measure(engine), calibrant.measure(tally)
        for name in (
            *("rows", "mean_forecast", "mean_outcome", "brier", "cutoff", "ks", "ece_binned"),
            *("calibration_in_the_large", "observed_expected_ratio"),
        ):
            same(getattr(found, name), getattr(exact, name))
        same(found.worst_interval.to_dict(), exact.worst_interval.to_dict())
        assert found.smooth == pytest.approx(exact.smooth, abs=2.0**-14)
        assert found.smooth != exact.smooth
        assert found.distance.low <= exact.distance.high
        assert found.distance.high >= exact.distance.low
        assert all(relation.holds for relation in found.relations)
        assert found.notes[0].startswith("there are too many distinct forecasts to tell them all apart")

    @pytest.mark.parametrize("kind", ["plain", "weights"])
    def test_the_large_sample_test_gives_the_larger_end(self, kind, monkeypatch):
        monkeypatch.setattr(refinement, "_TALLY_GRID", Grid(13, 0.0, 1.0))
        engine, tally = self.engine(kind)
        found = calibrant.calibration_test(engine, method="asymptotic")
        exact = calibrant.calibration_test(tally, method="asymptotic")
        assert found.statistic == pytest.approx(exact.statistic, abs=1e-12)
        assert exact.pvalue <= found.pvalue == pytest.approx(exact.pvalue, rel=1e-2)
        assert "the p-value of the rows lies between" in found.notes[-1]

    def test_rows_that_cannot_be_told_apart_in_bounded_memory_are_refused(self, monkeypatch):
        monkeypatch.setattr(refinement, "_MOST_ZOOMS", 0)
        y, _ = outcomes(FORECASTS["one narrow cell"], "plain")
        engine = ToyEngine(y, FORECASTS["one narrow cell"], fetch_limit=0)
        with pytest.raises(ValueError, match=r"^after 0 scans [\d,]+ of 3,000 rows would still have to be looked at"):
            calibrant.cutoff_calibration_error(engine)


class TestRefusals:
    def test_what_a_source_already_holds(self):
        engine = ToyEngine([0.0, 1.0], [0.2, 0.4])
        more: list[tuple[str, Any]] = [("y_prob", [0.2]), ("sample_weight", [1.0]), ("pos_label", 1)]
        for name, value in more:
            with pytest.raises(ValueError, match=f"^{name} was given together with a source of rows, which already"):
                calibrant.cutoff_calibration_error(engine, **{name: value})

    def test_groups_where_one_set_of_rows_is_asked_for(self):
        grouped: Any = GroupedToyEngine(np.array([0.0, 1.0]), np.array([0.2, 0.4]), ["a", "b"])
        with pytest.raises(ValueError, match=r"^this source holds rows in groups; pass it to measure or certify, or"):
            calibrant.cutoff_calibration_error(grouped)
        assert calibrant.measure(grouped).groups == ("a", "b")
        with pytest.raises(ValueError, match=r"^by was given together with rows that are in groups already"):
            calibrant.certify(grouped, max_error=0.1, by=["a", "b"])
        one: Any = ToyEngine([0.0], [0.2])
        with pytest.raises(
            ValueError, match=r"^by_group needs grouped rows, such as scan\(..., by=...\), got ToyEngine"
        ):
            by_group(one, calibrant.measure)
        with pytest.raises(ValueError, match=r"^by was given together with a source of rows; name the groups' column"):
            calibrant.certify(ToyEngine([0.0], [0.2]), max_error=0.1, by=["a"])

    @pytest.mark.usefixtures("as_if_large")
    def test_data_that_change_between_two_scans(self, monkeypatch):
        y, _ = outcomes(FORECASTS["uniform"], "plain")
        engine = ToyEngine(y, FORECASTS["uniform"])
        whole = engine.whole
        engine.whole = ToyEngine(y[:1000], FORECASTS["uniform"][:1000]).whole
        monkeypatch.setattr(engine, "histogram", whole.histogram)
        with pytest.raises(ValueError, match=r"^the source had counted [\d,]+ rows and now has [\d,]+ in their place"):
            calibrant.cutoff_calibration_error(engine)


class TestGroups:
    def rows(self, kind="plain"):
        names = np.resize(["west", "east", "north", "south"], SIZE)
        forecast = np.select(
            [names == "west", names == "east", names == "north"],
            [FORECASTS["uniform"], FORECASTS["skewed"], FORECASTS["rounded"]],
            FORECASTS["one narrow cell"],
        )
        return (*outcomes(forecast, kind), forecast, names)

    @pytest.mark.usefixtures("as_if_large")
    @pytest.mark.parametrize("kind", ["plain", "weights", "fractions"])
    @pytest.mark.parametrize("method", ["adaptive", "normal", "hoeffding"])
    def test_are_judged_as_in_memory_and_share_their_scans(self, kind, method):
        y, w, p, names = self.rows(kind)
        grouped = GroupedToyEngine(y, p, names, w, fetch_limit=FEW)
        found = calibrant.certify(grouped, max_error=0.05, method=method)
        other = calibrant.certify(y, p, sample_weight=w, by=names, max_error=0.05, method=method)
        same(found.to_dict(), other.to_dict())
        assert max(fetched for engine in grouped.engines for fetched in engine.fetched) <= FEW

    @pytest.mark.usefixtures("as_if_large")
    def test_cost_as_many_scans_as_the_slowest_group_alone(self):
        y, _, p, names = self.rows()
        grouped = GroupedToyEngine(y, p, names)
        found = by_group(grouped, calibrant.cutoff_calibration_error)
        alone = [ToyEngine(y[names == name], p[names == name]) for name in grouped.groups]
        assert found == tuple(calibrant.cutoff_calibration_error(engine) for engine in alone)
        assert len(grouped.calls) == max(len(engine.scans) for engine in alone)
        assert grouped.calls[0] == ("histograms", [0, 1, 2, 3])

    @pytest.mark.usefixtures("as_if_large")
    @pytest.mark.parametrize("count", [4, 70])
    def test_look_for_coarse_entries_as_often_as_alone(self, monkeypatch, count):
        """A computation that is run anew after each answer remembers what it found in the tables that it had."""
        y, _, p, _ = self.rows()
        names = np.resize(np.arange(count), SIZE)
        looked_at: list[int] = []
        look = refinement.may_hold_extreme

        def noted(table):
            looked_at.append(len(table))
            return look(table)

        monkeypatch.setattr(refinement, "may_hold_extreme", noted)
        limits: dict[str, Any] = {"fetch_limit": 10, "zoom_cells": 2**12}
        monkeypatch.setattr("calibrant.rows.groups.ZOOM_CELLS", 2**12)
        engines = [ToyEngine(y[names == name], p[names == name], **limits) for name in range(count)]
        alone = tuple(map(calibrant.cutoff_calibration_error, engines))
        tables = sorted(looked_at)
        looked_at.clear()
        grouped = GroupedToyEngine(y, p, names.tolist(), **limits)
        assert by_group(grouped, calibrant.cutoff_calibration_error) == alone
        assert sorted(looked_at) == tables
        assert len(tables) > count  # some cells were cut finer

    def test_toss_the_coins_they_would_toss_alone(self):
        y, _, p, names = self.rows()
        found = calibrant.certify(GroupedToyEngine(y, p, names), max_error=0.05)
        together = calibrant.certify(y, p, by=names, max_error=0.05)
        same(found.to_dict(), together.to_dict())
        for name, certificate in zip(found.groups, found.certificates, strict=True):
            alone = calibrant.certify(
                y[names == name], p[names == name], max_error=0.05, confidence_level=1.0 - 0.05 / 4.0
            )
            assert certificate.assumptions[:2] == alone.assumptions
            same(certificate.to_dict() | {"assumptions": None}, alone.to_dict() | {"assumptions": None})

    def test_are_fetched_in_turns_when_their_rows_pass_the_limit(self, monkeypatch):
        y, _, p, names = self.rows()
        together = GroupedToyEngine(y, p, names, fetch_limit=SIZE // 3)
        calibrant.certify(together, max_error=0.05)
        assert [call for call, _ in together.calls].count("fetches") == 1
        monkeypatch.setattr("calibrant.rows.groups._FETCHES_AT_ONCE", 1)
        grouped = GroupedToyEngine(y, p, names, fetch_limit=SIZE // 3)
        calibrant.certify(grouped, max_error=0.05)
        assert [call for call, _ in grouped.calls].count("fetches") > 1
        assert grouped.calls[0] == ("histograms", [0, 1, 2, 3])

    def test_are_held_a_few_at_a_time(self, monkeypatch):
        monkeypatch.setattr("calibrant.rows.groups.GROUPS_AT_ONCE", 3)
        y, _, p, names = self.rows()
        grouped = GroupedToyEngine(y, p, names)
        by_group(grouped, calibrant.measure)
        assert [groups for call, groups in grouped.calls if call == "histograms"] == [[0, 1, 2], [3]]

    def test_that_are_wrong_are_named(self):
        grouped = GroupedToyEngine(np.zeros(4), np.array([0.0, 0.0, 0.5, 0.5]), [1, 1, 2, 2])
        with pytest.raises(ValueError, match=r"^by group 1: y_prob is 0 everywhere"):
            by_group(grouped, calibrant.measures.observed_expected_ratio)


class TestGrowth:
    @given(rows(binary=True), st.integers(0, 12), st.floats(0.001, 0.9), st.sampled_from([-1.0, 1.0]))
    def test_from_sums_is_as_near_as_it_says(self, data, bits, rate, sign):
        y, p, _ = data
        tally = Tally.from_arrays(y, p)
        table = Cells.from_arrays(y, p, bits=bits)
        scores, exact = (refinement.growth_scores(totals, rate, sign) for totals in (table, tally))
        inside = np.searchsorted(table.high, tally.forecast)
        gain, loss = (np.bincount(inside, weights=column) for column in (exact.up, exact.down))
        error = np.abs(scores.total - (gain - loss))
        assert (error <= refinement.growth_error(table, rate) + 1e-12 * len(p)).all()
        assert (scores.up >= gain - 1e-12 * len(p)).all()
        assert (scores.down >= loss - 1e-12 * len(p)).all()

    @pytest.mark.parametrize("rate", [1e-9, 1e-4, 2e-3, 2.0**-6, 0.0157, 0.3])
    @pytest.mark.parametrize("sign", [-1.0, 1.0])
    def test_has_the_rest_of_third_order_to_all_digits_that_count(self, rate, sign):
        bets = sign * rate * np.linspace(0.0, 1.0, 9)
        exact = [float(-(1 - Decimal(x)).ln() - Decimal(x) - Decimal(x) ** 2 / 2) for x in bets.tolist()]
        assert refinement._third_order(bets, rate) == pytest.approx(exact, rel=2.0**-36, abs=4e-16 * rate)

    @pytest.mark.usefixtures("as_if_large")
    def test_takes_finer_cells_where_the_sums_are_not_enough(self, monkeypatch):
        y, _ = outcomes(FORECASTS["uniform"], "plain")
        tally = Tally.from_arrays(y, FORECASTS["uniform"])
        engine = ToyEngine(y, FORECASTS["uniform"])
        exact = calibrant.certify(tally, max_error=0.1).upper
        assert calibrant.certify(engine, max_error=0.1).upper == pytest.approx(exact, abs=1e-12)
        assert engine.scans.count("histogram") == 2
        monkeypatch.setattr("calibrant.certificates.betting.GROWTH_TOLERANCE", 1.0)
        engine = ToyEngine(y, FORECASTS["uniform"])
        assert calibrant.certify(engine, max_error=0.1).upper == pytest.approx(exact, abs=1e-7)
        assert engine.scans.count("histogram") == 1

    @pytest.mark.usefixtures("as_if_large")
    @pytest.mark.parametrize("name", ["uniform", "skewed", "tiny", "one narrow cell"])
    @pytest.mark.parametrize("level", [0.6, 0.99])
    def test_from_sums_never_gives_a_limit_that_is_too_low(self, monkeypatch, name, level):
        monkeypatch.setattr("calibrant.certificates.betting.GROWTH_TOLERANCE", 1.0)
        y, _ = outcomes(FORECASTS[name][:FEW], "plain")
        exact, found = (
            calibrant.certify(rows, max_error=0.1, confidence_level=level).upper
            for rows in (Tally.from_arrays(y, FORECASTS[name][:FEW]), ToyEngine(y, FORECASTS[name][:FEW]))
        )
        assert exact - 1e-15 <= found <= exact + 1e-5

    @pytest.mark.parametrize("ends", [1, 2])
    @pytest.mark.parametrize("cells", [2**17, 2**13, 2**10])
    def test_of_fast_bets_is_exact_however_rows_in_memory_are_cut(self, monkeypatch, ends, cells):
        p = np.random.default_rng(3).random(150_000) * 2e-3
        p[::2] = p[::2] if ends == 1 else 1.0 - p[::2]
        y = (p > 0.5).astype(float)  # little variance, hence fast bets
        monkeypatch.setattr(refinement, "_MOST_CUT", cells)
        exact = calibrant.certify(Tally.from_arrays(y, p), max_error=0.1).upper
        assert calibrant.certify(array_rows(y, p), max_error=0.1).upper == pytest.approx(exact, abs=1e-12)
        rows = refinement.Opened(array_rows(y, p))
        whole = rows.start(FIRST_GRID)
        table = rows.cut(whole, np.flatnonzero(whole.high > whole.low), 22)
        assert (table.high - table.low).max() <= 2.0**-22
        assert table.residual_total == pytest.approx(whole.residual_total, abs=1e-9)
        assert isinstance(table, Tally) == (cells == 2**10)  # one sort is quicker where most rows would be fetched
        between = (table.low > 2.0**-9) & (table.high < 1.0 - 2.0**-9)  # beyond the reach of 2^13 cells
        alone = cells == 2**10 or (cells == 2**13 and ends == 2)  # stretches far apart are fetched, a narrow one is cut
        assert (table.high == table.low)[between].all() == alone


class TestAwkwardForecasts:
    def test_nearest_zero_are_told_apart_or_refused_at_once(self, monkeypatch):
        monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
        p = np.array([0.0, 5e-324, 1e-310] * 5)
        y = np.arange(15) % 2
        engine = ToyEngine(y, p, fetch_limit=15)
        assert calibrant.worst_interval(engine) == calibrant.worst_interval(y, p)
        engine = ToyEngine(y, p, fetch_limit=2)
        with pytest.raises(ValueError, match=r"^after 1 scans 15 of 15 rows .* raise the limit \(fetch_limit\)"):
            calibrant.worst_interval(engine)

    @pytest.mark.parametrize("low", [1.0 - 2.0**-53, 0.5, 2.0**-15, 1e-9])
    @pytest.mark.parametrize("limit", [1, 2, 7])
    def test_one_step_apart_are_told_apart_however_few_rows_may_be_fetched(self, monkeypatch, low, limit):
        monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
        p = np.repeat([low, np.nextafter(low, 2.0), np.nextafter(low, 2.0)], 20)
        y = np.repeat([1, 0, 1], 20)
        engine = ToyEngine(y, p, fetch_limit=limit, tally_limit=limit)
        same(calibrant.worst_interval(engine).to_dict(), calibrant.worst_interval(y, p).to_dict())
        assert max(engine.fetched, default=0) <= limit

    @pytest.mark.parametrize("kind", ["counts", "fractions", "weights"])
    @pytest.mark.parametrize("forecast", [0.1, 0.3, 0.7])
    def test_many_in_one_cell_add_up_without_rounding_errors(self, kind, forecast):
        size = 400_000
        p = np.full(size, forecast)
        p[::2] += 1e-9
        y = np.zeros(size)
        y[::3] = 0.7 if kind == "fractions" else 1.0
        w = np.full(size, 0.7) if kind == "weights" else None
        cells = Cells.from_arrays(y, p, sample_weight=w, bits=15)
        assert len(cells) == 1
        weight = np.ones(size) if w is None else w
        for name, values in {"residual": weight * (y - p), "weight": weight, "outcome": weight * y}.items():
            assert getattr(cells, name)[0] == pytest.approx(math.fsum(values.tolist()), rel=0.0, abs=5e-10)

    def test_that_round_to_certainty_reject_nothing(self, monkeypatch):
        monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
        p = np.repeat([1.0, 1.0 - 2.0**-53], [5, 6])
        engine = ToyEngine(np.ones(11), p, tally_limit=1)
        assert calibrant.calibration_test(engine, method="asymptotic").pvalue == 1.0


def test_a_grid_inside_stretches_cuts_the_widest_and_counts_what_it_is_asked_for():
    low, high = np.array([0.1, 0.5]), np.array([0.11, 0.52])
    grid = Grid.inside(low, high, 1000)
    assert (high - low).max() / 2.0 >= 1.0 / grid.scale
    assert (high - low).sum() * grid.scale <= 1000
    source = ToyEngine(*outcomes(FORECASTS["uniform"], "plain")[:1], FORECASTS["uniform"]).whole
    table = source.histogram(grid)
    inside = (FORECASTS["uniform"] >= low[:, None]) & (FORECASTS["uniform"] <= high[:, None])
    assert table.row_total == inside.sum()
    assert table.index.tolist() == sorted(set(grid.index(FORECASTS["uniform"][inside.any(axis=0)]).tolist()))
    assert source.histogram(FIRST_GRID).row_total == SIZE
