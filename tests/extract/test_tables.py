from garage.extract.tables import markdown


def test_the_first_row_is_the_head_and_short_rows_are_filled_up() -> None:
    assert markdown([["Name", "Sum"], ["Ann"], ["Bo", "2"]]) == "| Name | Sum |\n| --- | --- |\n| Ann |  |\n| Bo | 2 |"


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown([["a|b"], ["c"]]).splitlines()[0] == r"| a\|b |"


def test_empty_rows_are_left_out_and_nothing_remains_of_an_empty_table() -> None:
    assert markdown([["", ""], ["x", "y"], ["", ""]]) == "| x | y |\n| --- | --- |"
    assert markdown([["", ""]]) == ""
    assert markdown([]) == ""
