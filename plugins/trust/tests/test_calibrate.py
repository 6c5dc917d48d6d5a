"""``dicast calibrate`` on a cascade of recorded judges."""

from __future__ import annotations

from trust_project import rows_of


def test_it(project):
    rows = rows_of(200, wrong=lambda c: 0.02 if c >= 0.8 else 0.4)
    project.write(rows)
    print(project.run()["scored"])
    found = project.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    print(found.output)
    assert found.exit_code == 0
