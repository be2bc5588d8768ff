"""Families of questions: one verdict for all, single verdicts that hold together, tests, words and JSON."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from class_cases import RIGHT_BY_CLASS, drawn, some_rows

from calibrant import Tally, calibration_test, certify, confidence_interval, cutoff_calibration_error, risk_bands
from calibrant.certificates import QuestionCertificates, families
from calibrant.certificates.betting import adaptive_upper, adaptive_uppers, bet_exponent
from calibrant.certificates.families import certify_family, step_down, step_up
from calibrant.certificates.judging import check_plan, evaluate
from calibrant.measures.judged import judged_measure
from calibrant.rows.checks import Observations
from calibrant.rows.intake import source_of
from calibrant.rows.questions import Questions, masked


def _plan(method="adaptive"):
    return check_plan(method, judged_measure("cutoff", 2.0, None, None, None), 0.95, "rows")


def _claims(pvalues, delta=0.05):
    """Return claims that hold from their p-value on."""
    count = len(pvalues)
    return families.Claims(
        count,
        frozenset(np.flatnonzero(pvalues <= delta).tolist()),
        frozenset(np.flatnonzero(pvalues <= delta / count).tolist()),
        lambda place, parts: bool(pvalues[place] <= delta / parts),
    )


def _closed(pvalues, delta=0.05, *, simes=False):
    """Return the claims that closed testing makes: every set of hypotheses that holds one must be rejected."""
    count = len(pvalues)
    made = set(range(count))
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            ordered = np.sort(pvalues[list(chosen)])
            levels = np.arange(1, size + 1) / size if simes else np.full(size, 1.0 / size)
            if not (ordered <= delta * levels).any():
                made -= set(chosen)
    return made


def test_holm_and_hochberg_make_what_closed_testing_makes():
    rng = np.random.default_rng(0)
    gained = 0
    for _ in range(300):
        count = int(rng.integers(1, 9))
        pvalues = 0.05 * rng.random(count) * rng.choice([0.2, 1.0, 2.0])
        made, more = step_down(_claims(pvalues)), step_up(_claims(pvalues))
        assert frozenset(np.flatnonzero(pvalues <= 0.05 / count)) <= made <= _closed(pvalues)
        assert made <= more <= _closed(pvalues, simes=True)
        gained += len(more) > len(made)
        if count in (1, 2, 4, 8):  # numbers that are not rounded, at first
            holm = np.argsort(pvalues)
            steps = [pvalues[holm[k]] <= 0.05 / (count - k) for k in range(count)]
            exact = set(holm[: steps.index(False) if False in steps else count].tolist())
            assert made <= exact
    assert gained > 10


def test_limits_at_stricter_levels_are_no_narrower():
    rng = np.random.default_rng(1)
    for rows in (30, 200):
        for p in (rng.random(rows), np.round(rng.beta(0.3, 3.0, rows), 1)):
            y = (rng.random(rows) < np.clip(p + 0.1, 0.0, 1.0)).astype(np.uint8)
            source = source_of(Observations(y, p, None, True))
            for method in ("adaptive", "exact", "normal", "hoeffding"):
                found = [
                    evaluate(_plan(method), source, 0, lower_delta=0.05 / parts, upper_delta=0.05 / parts)
                    for parts in (1, 2, 4, 16)
                ]
                assert (np.diff([each.limits[1] for each in found]) >= 0.0).all()
                assert (np.diff([each.limits[0] for each in found]) <= 0.0).all()


def test_limits_of_a_family_are_those_of_its_bets():
    rng = np.random.default_rng(12)
    p = rng.random(300)
    tally = Tally.from_arrays(rng.random(300) < p, p)
    assert adaptive_uppers(tally, tally, 0.05) == (adaptive_upper(tally, tally, 0.05),)
    found = adaptive_uppers(tally, tally, 0.05, 100, (1, 2, 10, 100))
    assert (np.diff(found) > 0.0).all()
    # At the last, as much is spent on the variance as a limit by itself spends, and the rate is that of the first.
    assert bet_exponent(0.05, 100, 100) == pytest.approx(np.log(100.0 / (0.05 * 0.98)), rel=1e-12)
    assert adaptive_upper(tally, tally, 0.0005) <= found[-1] <= 1.2 * adaptive_upper(tally, tally, 0.0005)
    assert found[0] == adaptive_upper(tally, tally, 0.05)


def test_all_together_needs_no_correction_and_one_by_one_does():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(5), 1500)
    y = drawn(rng, p)
    found = certify(y, p, max_error=0.05, questions="classwise")
    alone = [certify(y == k, p[:, k], max_error=0.05) for k in range(5)]
    stricter = [certify(y == k, p[:, k], max_error=0.05, confidence_level=0.99) for k in range(5)]
    assert found.upper == pytest.approx([each.upper for each in alone], rel=1e-12)
    assert found.joint_upper == max(found.upper)
    assert found.joint_lower == max(each.lower for each in stricter)
    assert [each.upper for each in found.certificates] == pytest.approx([each.upper for each in stricter], rel=0.08)
    for method in ("hoeffding", "normal", "exact"):
        other = certify(y, p, max_error=0.05, questions="classwise", method=method)
        assert other.upper == tuple(certify(y == k, p[:, k], max_error=0.05, method=method).upper for k in range(5))
    assert found.estimate == max(each.estimate for each in alone) == found[found.worst].estimate
    limit = found.joint_upper
    between = certify(y, p, max_error=limit, questions="classwise")
    assert between.verdict == "certified"
    assert not certify(y, p, max_error=np.nextafter(limit, 0.0), questions="classwise")
    assert "undecided" in [each.verdict for each in between.certificates]  # the worst one, at a part of delta


def test_holm_decides_more_than_equal_parts_of_delta():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(4), 2000)
    y = drawn(rng, p)
    bounds = certify(y, p, max_error=0.5, questions="classwise")
    uppers = sorted(each.upper for each in bounds.certificates)
    limit = (uppers[-2] + uppers[-1]) / 2.0
    if max(bounds.upper) > limit:
        limit = max(bounds.upper) * 1.0000001
    found = certify(y, p, max_error=limit, questions="classwise")
    assert sum(each.verdict == "certified" for each in found.certificates) == 3
    assert found.verdicts == ("certified",) * 4


def test_what_is_wrong_is_refuted_and_named():
    y, p = RIGHT_BY_CLASS
    found = certify(np.tile(y, 5), np.tile(p, (5, 1)), max_error=0.05, questions="subsets", classes=range(4))
    assert found.verdict == "refuted"
    assert "above 0.05 for" in str(found).splitlines()[0]
    assert found.verdicts.count("certified") > 0
    assert all(len(line.split()) <= 36 for line in str(found).splitlines()[:1])


def test_disjoint_questions_are_certified_together_when_each_is():
    rng = np.random.default_rng(4)
    p = rng.random(900)
    y = (rng.random(900) < p).astype(np.uint8)
    rows = Observations(y, p, None, True)
    parts = np.array_split(np.arange(900), 3)
    apart = Questions("classwise", ("a", "b", "c"), 900, lambda k: rows.take(parts[k]), disjoint=True)
    uppers = certify_family(_plan(), apart, 0.5, 0).upper
    limit = max(uppers)
    together = certify_family(_plan(), apart, limit, 0)
    assert together.verdict == "certified"
    assert together.verdicts == ("certified",) * 3
    one_by_one = certify_family(_plan(), Questions("classwise", apart.labels, 900, apart.make), limit, 0)
    assert one_by_one.verdicts.count("undecided") >= 1


def test_rows_outside_a_mask_count_and_add_nothing():
    rng = np.random.default_rng(5)
    p, y = rng.random(400), rng.integers(2, size=400).astype(np.uint8)
    mask = rng.random(400) < 0.25
    column = masked(Observations(y, p, None, True), mask)
    inside = cutoff_calibration_error(y[mask], p[mask])
    assert cutoff_calibration_error(column) == pytest.approx(inside * mask.mean(), abs=1e-12)
    limits = confidence_interval(column, method="hoeffding", alternative="less")
    assert limits.upper == pytest.approx(inside * mask.mean() + np.sqrt(2.0 * np.log(20.0) / 400), abs=1e-12)


@pytest.mark.parametrize("asked", ["classwise", "top_label", "pairs", "subsets"])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_intervals_of_all_questions(asked, alternative):
    y, p = some_rows(np.random.default_rng(6), 200, 3)
    found = confidence_interval(y, p, questions=asked, alternative=alternative)
    assert found.lower <= found.estimate <= found.upper
    if alternative == "less":
        assert found.upper == max(certify(y, p, max_error=0.5, questions=asked).upper)
    assert found.estimate == cutoff_calibration_error(y, p, questions=asked)


def test_results_are_rebuilt_from_json_and_refuse_contradictions():
    y, p = some_rows(np.random.default_rng(7), 100, 3)
    found = certify(y, p, max_error=0.3, questions="classwise")
    assert QuestionCertificates.from_json(found.to_json()) == found
    assert str(QuestionCertificates.from_json(found.to_json())) == str(found)
    assert list(found.frame()["question"]) == [0, 1, 2]
    content = found.to_dict()
    content["verdicts"] = ["refuted"] * 3
    with pytest.raises(ValueError, match=r"^verdicts of this QuestionCertificates"):
        QuestionCertificates.from_dict(content)
    content["kind"] = "sorts"
    with pytest.raises(ValueError, match=r"^kind of this QuestionCertificates is 'sorts'"):
        QuestionCertificates.from_dict(content)


def test_the_test_goes_through_what_could_have_been():
    """Compare with all classes that three rows could have had."""
    p = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.1, 0.7, 0.2]])
    outcomes = np.array(np.meshgrid(*[range(3)] * 3)).reshape(3, -1).T
    chance = np.array([np.prod(p[range(3), each]) for each in outcomes])
    for asked in ("classwise", "top_label", "pairs", "subsets"):
        errors = [cutoff_calibration_error(y, p, questions=asked, classes=range(3)) for y in outcomes]
        for k in (0, 5, 13):
            truth = chance[np.array(errors) >= errors[k] - 1e-12].sum()
            found = calibration_test(outcomes[k], p, questions=asked, classes=range(3), n_resamples=1999, rng=1)
            assert found.method == "exact"
            assert found.pvalue == pytest.approx(truth, abs=0.05)
            assert max(found.statistics) == pytest.approx(errors[k], abs=1e-12)


def test_the_test_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(3), 80)
    y, order = drawn(rng, p), rng.permutation(80)
    asked: Any = {"questions": "classwise", "n_resamples": 999, "rng": 0}
    assert calibration_test(y, p, **asked) == calibration_test(y[order], p[order], **asked)
    certain = calibration_test([0, 1, 2, 0], np.eye(3)[[0, 1, 2, 0]], **asked)
    assert certain.pvalue == 1.0
    weighted = calibration_test(y, p, sample_weight=np.linspace(1, 2, 80), **asked)
    assert weighted.method == "bonferroni"
    assert weighted.pvalue == min(3 * min(weighted.pvalues), 1.0)
    with pytest.raises(ValueError, match=r"^cluster was given together with several questions"):
        calibration_test(y, p, cluster=order, **asked)


def test_bands_of_a_top_label_are_about_its_rows():
    y, p = some_rows(np.random.default_rng(9), 300, 3)
    found = risk_bands(y, p, cutoffs=[0.5], questions="top_label")
    for k in range(3):
        inside = p.argmax(axis=1) == k
        assert found[k].rows.sum() == inside.sum()
        alone = risk_bands(y[inside] == k, p[inside, k], cutoffs=[0.5], confidence_level=1.0 - 0.05 / 3)
        assert found[k].upper == pytest.approx(alone.upper, rel=1e-12)
    assert len(found.frame()) == 6


def test_clusters_count_for_every_question():
    y, p = some_rows(np.random.default_rng(10), 400, 3)
    cluster = np.arange(400) // 4
    found = certify(y, p, max_error=0.5, questions="classwise", cluster=cluster)
    assert found.upper[2] == certify(y == 2, p[:, 2], max_error=0.5, cluster=cluster).upper


def test_verdicts_that_are_surer_than_the_limits_beside_them_say_why():
    rng = np.random.default_rng(0)
    y_prob = rng.random(3000)
    y_true, part = rng.random(3000) < y_prob, np.arange(3000) % 3
    found = certify(y_true, y_prob, max_error=0.3, groups=part, scale="group")
    assert "Holm" not in str(found)
    limit = (max(each.upper for each in found.certificates) + min(each.upper for each in found.certificates)) / 2.0
    seen = []
    for share in np.linspace(0.8, 1.2, 9):
        found = certify(y_true, y_prob, max_error=limit * share, groups=part, scale="group")
        surer = [said for said, each in zip(found.verdicts, found.certificates, strict=True) if said != each.verdict]
        assert ("Some verdicts say more than the limits beside them: limits hold for all groups" in str(found)) is bool(
            surer
        )
        seen += surer
    assert seen
