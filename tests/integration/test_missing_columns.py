"""Columns that templates and options name and the data lack: refused before anything is spent."""

from __future__ import annotations

import pytest

from dicast._kernel.run import check_data

MODEL = '{openai/chat: {base_url: "http://127.0.0.1:1/v1", model: m, price: free}}'
CSV = "id,city,expected\na,Ankara,Turkey\nb,Berlin,Germany\n"


@pytest.fixture
def errors(shop):
    """Return a function that returns the errors of ``dicast check``, which are those of ``dicast run`` too."""
    shop.write("rows.csv", CSV)

    def errors(text):
        file = shop.pipeline(text).name
        done = shop.dicast("check", file, "--json")
        if done.json["errors"]:
            run = shop.dicast("run", file, "--json")
            assert (done.code, run.code) == (2, 2)
            assert run.json["error"]["errors"] == done.json["errors"]
            assert not shop.dicast("ledger", "export").out
        return done.json["errors"]

    return errors


def pipeline(user="{{ city }}", fields="{reference: expected}", more="metrics: [diff/match]\n"):
    source = f"source: {{rows/csv: {{path: rows.csv, fields: {fields}}}}}\n"
    return f"{source}task:\n  prompt/chat:\n    model: {MODEL}\n    user: '{user}'\n{more}"


def test_a_misspelled_name_of_a_template_has_its_place_and_the_nearest_column(errors):
    (error,) = errors(pipeline("Where is {{ citty }}?"))
    assert (error["file"], error["line"], error["column"], error["path"]) == ("p.yaml", 5, 11, "task.user")
    assert (error["value"], error["hint"]) == ("citty", "city")
    assert error["message"] == "no row has a value for 'citty'; the rows have id, reference, city, expected"


def test_a_misspelled_column_of_the_source_has_its_place_in_the_pipeline(errors):
    (error,) = errors(pipeline(fields="{reference: expectd}"))
    place = len("source: {rows/csv: {path: rows.csv, fields: {reference: ") + 1
    assert (error["file"], error["line"], error["column"]) == ("p.yaml", 1, place)
    assert (error["path"], error["hint"]) == ("source.fields.reference", "expected")
    assert error["message"].startswith("rows.csv:1: the header has no 'expectd'; ")


def test_all_missing_columns_are_reported_at_once(errors):
    assert [error["value"] for error in errors(pipeline("{{ citty }} {{ cuntry }} {{ city }}"))] == ["citty", "cuntry"]
    assert [error["value"] for error in errors(pipeline(fields="{input: citty, reference: expectd}"))] == [None, None]


def test_the_experiments_of_a_suite_are_checked(errors):
    suite = "experiments:\n  a: {}\n  b: {set: {task.user: '{{ citty }}'}}\n  c: {set: {task.system: '{{ cite }}'}}\n"
    found = errors(pipeline(more=f"metrics: [diff/match]\n{suite}"))
    assert [(error["line"], error["value"]) for error in found] == [(9, "citty"), (10, "cite")]


def test_a_name_of_a_later_row_is_not_refused(errors, shop):
    shop.write("data.jsonl", [{"id": "a", "reference": "x"}, {"id": "b", "hint": "h", "reference": "x"}])
    text = f"task: {{prompt/chat: {{model: {MODEL}, user: '{{{{ hint }}}}'}}}}\nmetrics: [diff/match]\n"
    assert errors(text) == []
    shop.write("data.jsonl", [{"id": "a", "hint": None, "reference": "x"}])
    assert [error["value"] for error in errors(text)] == ["hint"]


@pytest.mark.parametrize(
    "user",
    [
        "{{ hint | default(1) }}",
        "{% if hint is defined %}{{ hint }}{% endif %}",
        '{% if city == "x" %}{{ hint }}{% endif %}',
        "{{ city or hint }}",
        "{% for part in city %}{{ part }}{% endfor %}",
        "{% set hint = city %}{{ hint }}",
        "{{ context.city }} {{ range(2) | list }}",
    ],
)  # fmt: skip
def test_a_name_that_no_row_needs_is_not_refused(errors, user):
    assert errors(pipeline(user)) == []


def test_a_file_that_is_too_large_is_named_and_not_read(shop, monkeypatch):
    shop.write("rows.csv", CSV)
    monkeypatch.setattr(check_data, "_MOST_BYTES", 10)
    done = shop.dicast("check", shop.pipeline(pipeline("{{ citty }}")).name)
    assert (done.code, done.out) == (
        0,
        "p.yaml: ok\nrows.csv was not read (0 MiB); dicast run reads it first\n",
    )


def test_a_metric_names_the_missing_column_of_its_template(errors):
    more = "metrics:\n  - check/contains: {value: '{{ expectd }}'}\n  - check/equals: {value: '{{ expected }}'}\n"
    (error,) = errors(pipeline(more=more))
    assert (error["line"], error["column"], error["path"]) == (7, 29, "metrics[0].value")
    assert (error["value"], error["hint"]) == ("expectd", "expected")


def test_a_metric_may_read_the_output_of_the_task_but_the_task_may_not(errors):
    assert errors(pipeline(more="metrics:\n  - check/contains: {value: '{{ output }}'}\n")) == []
    assert [error["path"] for error in errors(pipeline("{{ output }}"))] == ["task.user"]


def test_a_column_whose_name_is_no_word_is_found_or_refused(errors, shop):
    shop.write("rows.csv", "id,city,Right answer,a.b\na,Ankara,Turkey,x\n")
    names = "metrics:\n  - check/equals: {value: '{{ Right answer }}'}\n  - check/contains: {value: '{{ a.b }}'}\n"
    assert errors(pipeline(fields="{}", more=names)) == []
    (error,) = errors(pipeline(fields="{}", more=names.replace("Right answer", "Rihgt answer")))
    assert (error["value"], error["hint"]) == ("Rihgt answer", "Right answer")


def test_lines_that_a_run_refuses_are_a_note_of_the_check(shop):
    rows = [{"id": "a", "output": "x", "reference": "x"}] * 3
    shop.write("data.jsonl", rows)
    file = shop.pipeline("metrics: [diff/match]\n").name
    done = shop.dicast("check", file)
    assert (done.code, done.out.splitlines()[0]) == (0, f"{file}: ok")
    assert "dicast run refuses the data" in done.out
    assert "data.jsonl:2: duplicate id 'a', first on line 1 (1 of 2 problems)" in done.out.replace("\n", " ")
    assert shop.dicast("run", file).code == 2


def test_the_json_of_the_check_has_every_note_and_warning_that_the_check_prints(shop):
    shop.write("data.jsonl", [{"id": "a", "output": "x", "reference": "x"}] * 3)
    texts = {
        "refused.yaml": "metrics: [diff/match]\n",
        "missing.yaml": "metrics: [diff/match]\ngate: {baseline: main.json, max_drop: 0.1}\n",
        "kinds.yaml": "judges: [heuristic/turn]\n",
    }
    files = [shop.pipeline(text, name).name for name, text in texts.items()]
    printed = [line for line in shop.dicast("check", *files).out.splitlines() if not line.endswith(": ok")]
    done = shop.dicast("check", *files, "--json").json
    assert [warning["message"] for warning in done["warnings"]] == [line.removeprefix("warning: ") for line in printed]
    assert {warning["file"] for warning in done["warnings"]} == {*texts}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "3 of 4 rows have a blank 'city', which the prompt uses (task.user): 'b', 'c', 'd'"),
        (["--head", "2"], "1 of 2 rows have a blank 'city', which the prompt uses (task.user): 'b'"),
    ],
)
def test_rows_with_a_blank_text_in_the_prompt_are_named_before_the_first_call(shop, chat_server, arguments, words):
    shop.write("rows.csv", 'id,city,expected\na,Ankara,Turkey\nb,,x\nc,"  ",x\nd,"\n",x\n')
    chat_server.answer = "Turkey"
    text = pipeline().replace("http://127.0.0.1:1/v1", chat_server.url)
    name = shop.pipeline(text).name
    advice = "; to leave them out: --filter 'city~\\S'"
    checked = shop.dicast("check", name)
    assert (checked.code, checked.out.splitlines()[1][:29]) == (0, "warning: 3 of 4 rows have a b")
    done = shop.dicast("run", name, *arguments)
    assert done.err == f"warning: {words}{advice}\n"
    assert "blank 'city'" not in done.out  # one warning on the terminal
    shown = shop.dicast("show", "last", "--full").out
    assert f"{words}{advice}" in " ".join(shown.split())
    filtered = shop.dicast("run", name, "--filter", "city~\\S", "--json")
    assert "blank_column" not in [warning["kind"] for warning in filtered.json["warnings"]]


@pytest.mark.parametrize(
    ("column", "key"),
    [("kind", "column.kind"), ("failing", "column.failing"), ("id", "id")],
)
def test_the_filter_of_blank_texts_leaves_them_out(shop, chat_server, column, key):
    first = {} if column == "id" else {"id": "a"}
    shop.write(
        "data.jsonl", [{**first, column: "x", "reference": "x"}, {**first, "id": "b", column: " ", "reference": "y"}]
    )
    chat_server.answer = "x"
    text = f'task: {{prompt/chat: {{model: {MODEL}, user: "{{{{ {column} }}}}"}}}}\nmetrics: [diff/match]\n'
    file = shop.pipeline(text.replace("http://127.0.0.1:1/v1", chat_server.url)).name
    warnings = shop.dicast("check", file, "--json").json["warnings"]
    advice = [warning["message"].partition("--filter ")[2] for warning in warnings]
    assert advice == [f"'{key}~\\S'"]
    done = shop.dicast("run", file, "--filter", advice[0].strip("'"), "--json").json
    assert done["subjects"] == 1


def test_a_filter_that_leaves_out_nothing_is_named_next_to_the_number_of_subjects(shop):
    shop.write("data.jsonl", [{"id": "a", "kind": "", "output": "x", "reference": "x"}])
    file = shop.pipeline("metrics: [diff/match]\n").name
    lines = shop.dicast("run", file, "--filter", "kind~x?").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("1 subject"))
    words = " ".join(line.strip() for line in lines[at + 1 : at + 3])
    assert words.startswith(
        "warning: --filter 'kind~x?' leaves out none of the 1 subjects: 'kind' is the subject's kind;"
    )


def test_a_blank_text_that_no_prompt_prints_is_no_warning(shop):
    shop.write("rows.csv", "id,city,expected,output\na,,Turkey,Turkey\n")
    name = shop.pipeline(
        "source: {rows/csv: {path: rows.csv, fields: {reference: expected}}}\nmetrics: [diff/match]\n"
    ).name
    assert shop.dicast("check", name).out == f"{name}: ok\n"
    assert shop.dicast("run", name, "--json").json["warnings"] == []
