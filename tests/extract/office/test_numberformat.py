import pytest

from garage.extract.office.numberformat import general, is_date, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-3, "-3"),
        (0.1 + 0.2, "0.3"),
        (123456789012345, "123456789012345"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_without_a_format_has_no_noise(value: float, text: str) -> None:
    assert general(value) == text
    assert shown(value, "General") == text


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.256, "0%", "26%"),
        (0.256, "0.00%", "25.60%"),
        (1234.5, '"$"#,##0.00', "$1,234.50"),
        (-1234.5, "#,##0.00_);[Red](#,##0.00)", "(1,234.50)"),
        (-3, "0.0", "-3.0"),
        (-0.001, "0.0", "0.0"),
        (2.5, "#,##0.##", "2.5"),
        (12, "00000", "00012"),
        (7, '0 "days"', "7 days"),
        (7, r"0\k\g", "7kg"),
        (1599.99, "[$€-407] #,##0.00", "€ 1,599.99"),
        (1234567, '0.0,,"M"', "1.2M"),
        (0.00001234, "0.00E+00", "1.23E-05"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (123456789, "000-00-0000", "123-45-6789"),
        (0, '0.00;-0.00;"none"', "none"),
        (0, '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$-"),
        (0.4, "#", "0.4"),
    ],
)
def test_a_number_shows_as_its_format_says(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


@pytest.mark.parametrize("code", ["# ?/?", "[<100]0;0.0", "@", '"text;0', "0.0.0.0"])
def test_a_format_that_is_not_understood_counts_as_none(code: str) -> None:
    assert shown(2.5, code) == "2.5"


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (44927, "yyyy-mm-dd", "2023-01-01"),
        (44927.0, "d-mmm-yy", "2023-01-01"),
        (39000, "[$-409]d-mmm-yy;@", "2006-10-10"),
        (44927.75, "dd/mm/yyyy hh:mm", "2023-01-01 18:00"),
        (44927.99999, "m/d/yy h:mm", "2023-01-01 23:59:59"),
        (44927.999999, "m/d/yy h:mm", "2023-01-02 00:00"),
        (0.5, "h:mm AM/PM", "12:00"),
        (17816.60795, "h:mm:ss.000", "14:35:27"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (1, "mmm yyyy", "1900-01-01"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-5, "yyyy-mm-dd", "-5"),
        (1e300, "yyyy-mm-dd", "1e+300"),
    ],
)
def test_a_date_is_written_in_iso_8601(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


def test_dates_may_be_counted_from_1904() -> None:
    assert shown(0, "yyyy-mm-dd", epoch_1904=True) == "1904-01-01"


@pytest.mark.parametrize("code", ['0.00 "dollars"', "#,##0 [$USD]", "General", "0%", r"0\d", '[Red]0;"months"'])
def test_letters_that_stand_for_themselves_make_no_date(code: str) -> None:
    assert not is_date(code)
