"""Results as JSON and back: what every field holds, what is not finite, what is damaged, and the published schema."""

import dataclasses
import importlib.util
import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError
from result_cases import EDGE_CASES, RESULTS, result_of, tally
from schema_cases import SCHEMAS, published

import calibrant
from calibrant.certificates import Certificate, GroupCertificates, RiskBands, RowsNeeded
from calibrant.core.codec import NOT_FINITE, Declared, derived, fields_of, shape_of
from calibrant.core.results import Result
from calibrant.core.types import BoolArray, FloatArray, IntArray, Label
from calibrant.measures import Measures, Relation, Spectrum, Witness, WorstInterval
from calibrant.repairs import RecalibratorComparison

EVERY_RESULT = pytest.mark.parametrize("result", RESULTS, indirect=True)
EVERY_EDGE_CASE = pytest.mark.parametrize("edge_case", EDGE_CASES, indirect=True)


@pytest.fixture
def result(request):
    return result_of(request.param)


@pytest.fixture
def edge_case(request):
    return EDGE_CASES[request.param]()


# --- Dicts and JSON ---------------------------------------------------------------------------------------------------


def leaves(value):
    if isinstance(value, dict):
        for key, item in value.items():
            assert type(key) is str
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@EVERY_RESULT
def test_a_dict_holds_schema_type_and_every_field(result):
    content = result.to_dict()
    names = [field.name for field in dataclasses.fields(result)]
    assert list(content) == ["schema", "type", *names]
    assert content["schema"] == "calibrant/1"
    assert content["type"] == type(result).__name__


@EVERY_RESULT
def test_json_gives_back_the_dict(result):
    content = result.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert json.loads(result.to_json()) == content


@EVERY_EDGE_CASE
def test_json_of_edge_cases_holds_plain_finite_values(edge_case):
    results = [
        calibrant.measure(edge_case, spectrum=True),
        calibrant.worst_interval(edge_case),
        calibrant.measures.smooth_witness(edge_case),
        calibrant.measures.bounded_variation_witness(edge_case),
        calibrant.distance_from_calibration(edge_case),
        calibrant.measures.integrated_calibration_index(edge_case),
        calibrant.measures.integrated_calibration_index(edge_case, smoother="loess"),
    ]
    for result in results:
        content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert content == result.to_dict()
        for leaf in leaves(result.to_dict()):
            assert leaf is None or isinstance(leaf, (str, bool, int, float))
            assert not isinstance(leaf, float) or math.isfinite(leaf)


def test_arrays_become_lists_of_plain_numbers():
    witness = Witness(forecast=np.array([0.25, 0.75]), weight=np.array([1.0, -1.0]), value=0.5)
    assert witness.to_dict() == {
        "schema": "calibrant/1",
        "type": "Witness",
        "forecast": [0.25, 0.75],
        "weight": [1.0, -1.0],
        "value": 0.5,
    }
    assert all(type(leaf) is float for leaf in leaves(witness.to_dict()["forecast"]))


def test_results_inside_a_result_become_dicts_with_their_type():
    content = calibrant.measure(tally(), spectrum=True).to_dict()
    parts = {name: content[name]["type"] for name in ("slope", "curve", "distance", "worst_interval", "spectrum")}
    assert parts == {
        "slope": "CalibrationSlope",
        "curve": "CurveErrors",
        "distance": "CalibrationDistance",
        "worst_interval": "WorstInterval",
        "spectrum": "Spectrum",
    }
    assert {relation["type"] for relation in content["relations"]} == {"Relation"}
    assert content["relations"][0]["holds"] is True


def test_numbers_that_are_not_finite_become_words():
    wrong_and_sure = result_of("ScoreDecomposition with infinities").to_dict()
    assert [wrong_and_sure[name] for name in ("score", "miscalibration", "skill", "mass")] == [
        "Infinity",
        "Infinity",
        "-Infinity",
        "Infinity",
    ]
    assert result_of("RiskBands").to_dict()["bias"][0] == "NaN"
    assert json.loads(result_of("RiskBands").to_json())["mean_forecast"][0] == "NaN"


# --- And back ---------------------------------------------------------------------------------------------------------


def shape(value):
    """The types of everything inside a result, arrays with their kind of number."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind, value.shape
    if isinstance(value, tuple):
        return [shape(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: shape(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str if isinstance(value, str) else type(value)  # a phrase comes back as its words


def assert_rebuilt(result):
    for source in (Result, type(result)):
        for twin in (source.from_dict(result.to_dict()), source.from_json(result.to_json())):
            assert type(twin) is type(result)
            assert twin.to_dict() == result.to_dict()
            assert shape(twin) == shape(result)
            assert str(twin) == str(result)


@EVERY_RESULT
def test_a_result_is_rebuilt_from_its_dict_and_its_json(result):
    assert_rebuilt(result)
    assert type(result).from_json(result.to_json()) == result


def odd_values(result):
    """The fields of a result that may hold what JSON cannot write, each with such a number."""
    for name in type(result)._may_be_infinite:
        yield from ((name, math.inf), (name, -math.inf))
    for name in type(result)._may_be_undefined:
        yield name, math.nan


@EVERY_RESULT
def test_what_is_not_finite_is_rebuilt_wherever_it_may_stand(result):
    for name, number in odd_values(result):
        shape, value = fields_of(type(result))[name].shape, getattr(result, name)
        odd = np.append(value[1:], number) if isinstance(value, np.ndarray) else number
        odd = (*value[1:], number) if isinstance(value, tuple) else odd
        twin = shape.rebuilt(json.loads(json.dumps(shape.plain(odd), allow_nan=False)))
        np.testing.assert_array_equal(twin, odd)
        assert type(twin) is type(odd)


def test_an_infinite_log_loss_is_read_back():
    comparison = result_of("RecalibratorComparison with an infinite loss")
    assert comparison["as is"].log_loss == math.inf
    assert json.loads(comparison.to_json())["candidates"][0]["log_loss"] == "Infinity"
    assert RecalibratorComparison.from_json(comparison.to_json()) == comparison


@EVERY_EDGE_CASE
def test_results_of_edge_cases_are_rebuilt(edge_case):
    assert_rebuilt(calibrant.measure(edge_case, spectrum=True))
    assert_rebuilt(calibrant.measures.smooth_witness(edge_case))
    assert_rebuilt(calibrant.certify(edge_case, max_error=0.1))
    assert_rebuilt(calibrant.risk_bands(edge_case, cutoffs=[0.01, 0.99]))
    assert_rebuilt(calibrant.calibration_test(edge_case, method="asymptotic"))


def test_what_is_undefined_is_undefined_again():
    wrong_and_sure = result_of("ScoreDecomposition with infinities")
    assert type(wrong_and_sure).from_json(wrong_and_sure.to_json()).score == math.inf
    bands = RiskBands.from_json(result_of("RiskBands").to_json())
    assert np.isnan(bands.bias).tolist() == [True, False, False]
    assert bands.rows.tolist() == [0, 25, 15]
    measures = Measures.from_json(calibrant.measure([0, 0], [0.0, 0.0]).to_json())
    assert (measures.slope, measures.observed_expected_ratio, measures.spectrum) == (None, None, None)
    assert Certificate.from_json(result_of("certified Certificate").to_json()).rows_needed is None


def test_results_inside_a_result_are_rebuilt_as_what_they_were():
    measures = Measures.from_json(result_of("Measures with spectrum").to_json())
    assert isinstance(measures.spectrum, Spectrum)
    assert measures.spectrum.at(2) == result_of("Measures with spectrum").spectrum.at(2)
    assert all(isinstance(relation, Relation) for relation in measures.relations)
    grouped = GroupCertificates.from_json(result_of("weighted GroupCertificates").to_json())
    assert grouped.groups == (1, 2, 3)
    assert isinstance(grouped[2], Certificate)
    assert isinstance(grouped[2].worst_interval, WorstInterval)
    assert bool(grouped) == bool(result_of("weighted GroupCertificates"))


NO_ROWS_NEEDED = {
    "another type": (
        lambda _: result_of("Measures").to_dict(),
        r"^type is 'Measures', not a RowsNeeded; pass what its to_dict\(\) returned",
    ),
    "a type misspelt": (lambda data: {**data, "type": "RowNeeded"}, r"^type is 'RowNeeded', not a RowsNeeded"),
    "a list of types": (lambda data: {**data, "type": ["RowsNeeded"]}, r"^type is \['RowsNeeded'\], not a RowsNeeded"),
    "no type": (lambda data: without(data, "type"), r"^type is None, not a RowsNeeded"),
    "nothing": (lambda _: {}, r"^type is None, not a RowsNeeded"),
    "another schema": (
        lambda data: {**data, "schema": "calibrant/0"},
        r"^schema is 'calibrant/0', this version .* reads 'calibrant/1'",
    ),
    "a newer schema": (
        lambda data: {**data, "schema": "calibrant/2"},
        r"^this result was written by a newer version of calibrant \(calibrant/2\); .*; update calibrant",
    ),
    "a field missing": (
        lambda data: without(data, "power"),
        r"^power is missing from this RowsNeeded; pass all that to_dict\(\) returned",
    ),
    "null": (lambda _: None, r"^a RowsNeeded is rebuilt from the dict that its to_dict\(\) returned, got None"),
    "a list": (lambda _: [1, 2], r"^a RowsNeeded is rebuilt from the dict .*, got \[1, 2\]"),
    "a word": (lambda _: "RowsNeeded", r"^a RowsNeeded is rebuilt from the dict .*, got 'RowsNeeded'"),
}


def without(data, name):
    return {key: value for key, value in data.items() if key != name}


@pytest.mark.parametrize("name", NO_ROWS_NEEDED)
def test_what_is_no_such_result_is_refused(name):
    damage, message = NO_ROWS_NEEDED[name]
    data = damage(result_of("RowsNeeded").to_dict())
    with pytest.raises(ValueError, match=message):
        RowsNeeded.from_dict(data)
    with pytest.raises(ValueError, match=message):
        RowsNeeded.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "About 1,515 rows"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r"line 1 column"):
        Result.from_json(text)


def test_an_error_inside_a_nested_result_is_found():
    data = result_of("certified Certificate").to_dict()
    del data["worst_interval"]["share"]
    with pytest.raises(ValueError, match=r"^share is missing from this WorstInterval"):
        Certificate.from_dict(data)


def test_fields_that_later_versions_add_do_no_harm():
    result = result_of("RowsNeeded")
    assert RowsNeeded.from_dict({**result.to_dict(), "colour": "green"}) == result


# --- What a hint says -------------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, Any, Any]] = {  # what the field is declared as, what it holds, and what JSON holds
    "whole numbers in an array": (IntArray, np.array([1, 2]), [1, 2]),
    "floats that happen to be whole": (FloatArray, np.array([1.0, 2.0]), [1.0, 2.0]),
    "no floats": (FloatArray, np.array([]), []),
    "no whole numbers": (IntArray, np.array([], dtype=np.int64), []),
    "flags in an array": (BoolArray, np.array([True, False]), [True, False]),
    "floats that are not finite": (FloatArray, np.array([np.nan, 0.5, -np.inf]), ["NaN", 0.5, "-Infinity"]),
    "tuples of tuples": (tuple[tuple[float, ...], ...], ((1.0,), (), (math.inf, 0.5)), [[1.0], [], ["Infinity", 0.5]]),
    "a pair": (tuple[str, float], ("NaN", math.inf), ["NaN", "Infinity"]),
    "a number or none": (float | None, None, None),
    "an infinite number or none": (float | None, -math.inf, "-Infinity"),
    "one number or several": (float | FloatArray, np.array([0.5]), [0.5]),
    "one of several numbers": (float | FloatArray, 0.5, 0.5),
    "a word of a few": (Literal["less", "greater"], "less", "less"),
    "labels": (tuple[Label, ...], ("Infinity", 3, 0.5, True), ["Infinity", 3, 0.5, True]),
    "a numpy number": (float, np.float32(0.5), 0.5),
    "a numpy whole number": (int, np.int32(3), 3),
    "a numpy flag": (bool, np.True_, True),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_written_and_read_as_their_hint_says(name):
    hint, value, held = VALUES[name]
    described = shape_of(hint)
    assert described.fits(value)
    written = described.plain(value)
    assert (written, shape(written)) == (held, shape(held))
    rebuilt = described.rebuilt(json.loads(json.dumps(written, allow_nan=False)))
    assert described.fits(rebuilt)
    np.testing.assert_equal(rebuilt, value)
    if isinstance(value, np.ndarray):
        assert rebuilt.dtype == value.dtype
    Draft202012Validator(described.schema(Declared(words=tuple(NOT_FINITE)))).validate(written)


MISFITS: dict[str, tuple[Any, Any]] = {
    "half a row": (IntArray, [0.5]),
    "a flag among numbers": (FloatArray, [0.5, True]),
    "a number as text": (FloatArray, ["0.5"]),
    "null among numbers": (FloatArray, [None]),
    "a number among flags": (BoolArray, [1]),
    "more than numpy counts": (IntArray, [2**70]),
    "more than a float": (float, 10**400),
    "a text for a number": (float, "infinity"),
    "null for a number": (float, None),
    "a third of a pair": (tuple[float, float], [0.5, 0.5, 0.5]),
    "a word of others": (Literal["less", "greater"], "equal"),
    "a number for a flag": (bool, 1),
    "a label with parts": (Label, ["a"]),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_is_not_as_the_hint_says_does_not_fit(name):
    hint, value = MISFITS[name]
    described = shape_of(hint)
    assert not described.fits(described.rebuilt(value))
    if "more than" not in name:  # JSON knows no such limits
        with pytest.raises(ValidationError):
            Draft202012Validator(described.schema(Declared())).validate(value)


@pytest.mark.parametrize("hint", [dict[str, float], Any, tuple[Any, ...]], ids=str)
def test_a_hint_that_nobody_described_is_refused(hint):
    with pytest.raises(
        TypeError, match=r"^a field of type (dict\[str, float\]|typing.Any) has no form in JSON; describe"
    ):
        shape_of(hint)


# --- The schema -------------------------------------------------------------------------------------------------------


def test_the_published_schema_is_up_to_date():
    found = importlib.util.spec_from_file_location("write", SCHEMAS / "write.py")
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    assert script.public_results() == set(derived(Result))
    assert (SCHEMAS / "results.json").read_text(encoding="utf-8") == script.text(), "run python docs/schemas/write.py"


@EVERY_RESULT
def test_every_result_is_as_the_schema_says(result):
    published().validate(json.loads(result.to_json()))


@EVERY_EDGE_CASE
def test_results_of_edge_cases_are_as_the_schema_says(edge_case):
    for found in (
        calibrant.measure(edge_case, spectrum=True),
        calibrant.certify(edge_case, max_error=0.1),
        calibrant.risk_bands(edge_case, cutoffs=[0.01, 0.99]),
        calibrant.decisions.score_decomposition(edge_case, score="log"),
    ):
        published().validate(found.to_dict())


DAMAGES = {
    "null for a limit": lambda data: {**data, "upper": None},
    "a word where every number is finite": lambda data: {**data, "lower": "Infinity"},
    "a limit above 1": lambda data: {**data, "max_error": 1.5},
    "a verdict of another kind": lambda data: {**data, "verdict": "maybe"},
    "half a row": lambda data: {**data, "rows": 1.5},
    "no estimate": lambda data: without(data, "estimate"),
    "no schema": lambda data: without(data, "schema"),
    "another type": lambda data: {**data, "type": "ConfidenceInterval"},
    "another result inside": lambda data: {**data, "worst_interval": result_of("Relation").to_dict()},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_schema_refuses_damage(damage):
    data = result_of("certified Certificate").to_dict()
    published().validate({**data, "colour": "green"})  # later versions may add fields
    with pytest.raises(ValidationError):
        published().validate(DAMAGES[damage](data))
