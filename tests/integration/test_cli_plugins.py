"""Installed plugins as the command line sees them: broken, blocked, doubled, and with commands of their own."""

from __future__ import annotations

import re

import pytest

BOMB = """
from pathlib import Path

Path(__file__).with_name("imported").write_text("it was imported")
raise RuntimeError("this plugin is broken")
"""
GOOD = """
from dicast import Score, hookimpl, metric

@metric(tier="proxy")
def fine(subject):
    return Score(1.0)

@hookimpl
def dicast_metrics():
    return [fine]
"""
COMMAND = """
import click

@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True)
def greet(name, as_json):
    "Greet somebody."
    if name == "nobody":
        raise ValueError("nobody is there")
    click.echo(f"hello {name}")
    return 7 if name == "seven" else None
"""


@pytest.fixture
def bomb(install, tmp_path):
    """Install a plugin whose import writes a file and raises; return that file."""
    install("dicast-bomb", "2.0", {"dicast": {"bomb": "dicast_bomb"}}, dicast_bomb=BOMB)
    return tmp_path / "site" / "imported"


def listed(shop, *arguments):
    done = shop.dicast("plugins", "--json", *arguments)
    assert done.code == 0
    return {plugin["name"]: plugin for plugin in done.json["plugins"]}


@pytest.mark.slow
def test_listing_imports_nothing(shop, bomb):
    for arguments in (["plugins"], ["plugins", "--json"], ["--help"], ["run", "--help"], ["verdict"], ["--version"]):
        shop.process(*arguments)
        assert not bomb.exists(), arguments
    result = listed(shop)["bomb"]
    assert (result["distribution"], result["version"], result["status"]) == ("dicast-bomb", "2.0", "not_loaded")


def test_every_option_of_our_own_plugins_is_explained(shop):
    loaded = listed(shop, "--load")
    components = [item for plugin in loaded.values() if plugin["name"] != "fake" for item in plugin["components"]]
    options = {(item["name"], key): about for item in components for key, about in item["options"].items()}
    assert options[("rows/csv", "path")]["description"] == "the file. gzip is recognized; ``-`` is standard input."
    assert [option for option, about in options.items() if not about.get("description")] == []


def test_every_component_of_our_own_plugins_has_a_summary_of_one_sentence(shop):
    """The summary appears in lists, so it is one line, and the next line is blank."""
    components = [
        item for name, plugin in listed(shop, "--load").items() if name != "fake" for item in plugin["components"]
    ]
    assert len(components) > 50
    for item in components:
        summary, *rest = item["docstring"].splitlines() or [""]
        assert re.fullmatch(r"[A-Z0-9`].{19,149}\.", summary), item["name"]
        assert (summary, rest[:1]) in ((item["summary"], []), (item["summary"], [""])), item["name"]


OPTIONS = """
from decimal import Decimal
from typing import Any, Literal

import attrs
from dicast import Judge, Score, hookimpl

@attrs.frozen
class Open:
    "Accept every subject."
    tier = "proxy"
    word: str | None = None
    count: int | Literal["all"] = 1
    price: Decimal | None = None
    grader: Judge | None = None
    extra: Any = None

    def score(self, subject):
        return Score(1.0)

@hookimpl
def dicast_metrics():
    return [Open]
"""


def test_the_listing_says_what_every_option_takes(shop, install):
    install("dicast-wide", "1.0", {"dicast": {"wide": "dicast_wide"}}, dicast_wide=OPTIONS)
    output = shop.dicast("plugins", "wide").out
    assert output.partition("wide/open (metric, proxy, free or as its grader): Accept every subject.\n")[
        2
    ].splitlines()[:5] == [
        "        word (string or none)",
        "        count = 1 (integer or one of 'all')",
        "        price (number or string or none)",
        "        grader (judge or none)",
        "        extra (anything)",
    ]


PRICED = """
from pathlib import Path
from typing import Mapping

import attrs
from dicast import ChatModel, Cost, Failure, Judge, Judgment, Metric, Reply, Score, hookimpl, judge, metric

@metric(tier="truth", cost="0.01 usd")
def fixed(subject, *, needed: int):
    "Score."
    return Score(1.0)

@judge(cost="500 msat")
def opinion(subject):
    "Judge."
    return Judgment(1.0, judge_kind="human")

@attrs.frozen
class Priced:
    "Score."
    tier = "truth"
    usd: str = "0.2"

    def score(self, subject):
        return Score(1.0)

    def estimate(self, subject):
        return Cost.parse(self.usd + " usd")

@attrs.frozen
class ByLength(Priced):
    "Score."

    def estimate(self, subject):
        return Cost(len(subject.text))

@attrs.frozen(kw_only=True)
class Costly(Priced):
    "Score."
    usd: str

@attrs.frozen
class Asking:
    "Judge."
    model: ChatModel
    fallback: Judge | None = None

    def judge(self, subject, children):
        return Failure("crashed", "")

    def estimate(self, subject):
        return Cost(1)

@attrs.frozen
class Several:
    "Score."
    tier = "proxy"
    others: Mapping[str, Metric] = attrs.field(factory=dict)

    def score(self, subject):
        return Score(1.0)

@attrs.frozen
class Chat:
    "Answer."
    price: str | None = None

    def __attrs_post_init__(self):
        if self.price is None:
            raise ValueError("price")

    def complete(self, request):
        return Failure("crashed", "")

    def estimate(self, request):
        return Cost.parse(self.price)

@attrs.frozen
class Usual:
    "Some metrics."

    def metrics(self):
        return ["priced/fixed"]

@hookimpl
def dicast_metrics():
    return [fixed, Priced, ByLength, Costly, Several]

@hookimpl
def dicast_judges():
    return [opinion, Asking]

@hookimpl
def dicast_models():
    return [Chat]

@hookimpl
def dicast_presets():
    return [Usual]
"""


def test_the_listing_says_what_a_component_costs_as_far_as_its_class_can(shop, install):
    install("dicast-priced", "1.0", {"dicast": {"priced": "dicast_priced"}}, dicast_priced=PRICED)
    loaded = listed(shop, "--load")
    assert {item["name"]: item["cost"] for item in loaded["priced"]["components"]} == {
        "priced/fixed": "0.01 usd",
        "priced/opinion": "500 msat",
        "priced/priced": "0.2 usd",
        "priced/by_length": "by its input",
        "priced/costly": "own price",
        "priced/asking": "own price 1 usd and as its model",
        "priced/several": "free or as its others",
        "priced/chat": "by its price",
        "priced/usual": "as its metrics",
    }
    output = shop.dicast("plugins", "--load").out
    assert "    priced/fixed (metric, truth, 0.01 usd): Score.\n" in output
    assert "    priced/opinion (judge, 500 msat): Judge.\n" in output
    assert "    proxy/format (metric, proxy, free): " in output
    costs = {item["name"]: item["cost"] for plugin in loaded.values() for item in plugin["components"]}
    assert costs["openai/chat"] == costs["litellm/chat"] == "by its price"
    assert costs["llm/judge"] == costs["cache/chat"] == "as its model"
    assert costs["llamacpp/chat"] == costs["csv/rows"] == costs["heuristic/turn"] == "free"


def test_the_listing_is_a_table_that_says_how_to_see_more(shop, install):
    install("dicast-good-with-a-long-name", "1.0", {"dicast": {"good": "dicast_good"}}, dicast_good=GOOD)
    lines = shop.dicast("plugins").out.splitlines()
    assert lines[0].split() == ["PLUGIN", "DISTRIBUTION", "STATUS"]
    packages = lines.index("")
    assert lines[packages + 1].split() == ["PACKAGE", "OFFERS"]
    assert any(line.startswith("dicast-rubrics 0.1.0  ") for line in lines[packages + 2 :])
    assert max(map(len, lines)) <= 80
    assert lines[-2].startswith("dicast plugins --load ")
    lines = lines[:packages]
    (row,) = (line for line in lines if line.startswith("good "))
    assert row.split() == ["good", "dicast-good-with-a-long-name", "1.0", "installed"]
    assert {line.index("installed") for line in lines[1:]} == {lines[0].index("STATUS")}
    loaded = shop.dicast("plugins", "--load").out
    assert not any(line.endswith("installed") for line in loaded.splitlines())
    assert "--load" not in loaded
    assert (
        len([line for line in loaded.splitlines() if line.startswith("    proxy/")]) == 6
    )  # its components, one a line


def test_packages_without_a_plugin_are_listed_with_their_faults(shop, install):
    groups = {"dicast.commands": {"hello": "dicast_hello:hello"}, "dicast.rubrics": {"lost-v1": "dicast_hello"}}
    install("dicast-hello", "1.0", groups, dicast_hello="import nope_missing")
    assert "dicast-hello 1.0      command hello; rubric lost-v1" in shop.dicast("plugins").out.splitlines()
    loaded = shop.dicast("plugins", "--load")
    assert loaded.code == 0
    missing = "ModuleNotFoundError: No module named 'nope_missing'"
    assert f"failed to import dicast_hello:hello: {missing} (dicast_hello.py:1)" in loaded.out
    assert f"rubric 'lost-v1' (dicast-hello 1.0) cannot be read: {missing}" in loaded.out
    packages = {package["distribution"]: package for package in shop.dicast("plugins", "--json").json["packages"]}
    assert packages["dicast-hello"]["commands"] == ["hello"]
    assert packages["dicast-hello"]["error"] is None  # nothing was imported
    assert "turn-llm-v1" in packages["dicast-rubrics"]["rubrics"]
    assert "    rubrics: turn-llm-v1" in shop.dicast("plugins", "dicast-rubrics").out.splitlines()


def test_keys_of_the_gate_are_listed_with_their_type_default_and_text(shop):
    lines = shop.dicast("plugins", "trust").out.splitlines()
    (line,) = (line for line in lines if line.startswith("    gate: corrected "))
    assert line.startswith("    gate: corrected = false (boolean)  compare the mean as corrected by audits")


def test_keys_of_the_gate_of_a_package_without_a_plugin_are_listed(shop, install):
    code = """
import attrs

@attrs.frozen
class Most:
    '''Limits a number.

    :param most_failed: the most failed subjects.
    '''

    most_failed: int
"""
    install("dicast-strict", "1.0", {"dicast.gate_clauses": {"most_failed": "dicast_strict:Most"}}, dicast_strict=code)
    assert (
        "    gate: most_failed (integer)  the most failed subjects."
        in shop.dicast("plugins", "dicast-strict").out.splitlines()
    )


@pytest.mark.parametrize("name", ["hello-there", "hello-ther", "dicast-hello-ther"])
def test_the_name_of_a_package_without_a_plugin_is_the_nearest_name(shop, install, name):
    groups = {"dicast.commands": {"greet": "dicast_hello:hello"}}
    install("dicast-hello-there", "1.0", groups, dicast_hello="import nope_missing")
    done = shop.dicast("plugins", name)
    assert done.code == 2
    assert "did you mean 'dicast-hello-there'?" in done.err


def test_a_version_conflict_is_named_without_importing_the_plugin(shop, install, bomb):
    info = install("dicast-late", "1.0", {"dicast": {"late": "dicast_bomb"}})
    (info / "METADATA").write_text("Name: dicast-late\nVersion: 1.0\nRequires-Dist: dicast-kernel>=99\n")
    plugin = listed(shop)["late"]
    assert plugin["status"] == "broken"
    assert plugin["error"].startswith("plugin 'late' (dicast-late 1.0): it requires dicast-kernel>=99, and ")
    assert listed(shop)["proxy"]["error"] is None
    assert not bomb.exists()


def test_a_command_for_another_version_of_dicast_is_refused_without_its_import(shop, install, bomb):
    info = install("dicast-late", "1.0", {"dicast.commands": {"late": "dicast_bomb:late"}})
    (info / "METADATA").write_text("Name: dicast-late\nVersion: 1.0\nRequires-Dist: dicast-kernel>=99\n")
    done = shop.dicast("late")
    assert done.code == 2
    assert "command 'late' (dicast-late 1.0): it requires dicast-kernel>=99, and " in done.err
    assert "install 'dicast-kernel>=99', or another version of the plugin" in done.err
    assert not bomb.exists()
    assert shop.dicast("plugins", "--load").out.count("it requires dicast-kernel>=99") == 1


UNDESCRIBED = {
    "type": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from decimal import Decimal\n",
    "estimate": "",
}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("type", "the options of dicast_odd.Odd cannot be read (name 'Decimal' is not defined)"),
        ("estimate", "odd/odd: estimate must return a dicast.Cost, not 0.5 (dicast_odd.py:"),
    ],
)
def test_a_component_that_cannot_be_described_is_a_line_and_hides_no_other(shop, install, fault, message):
    estimate = "0.5" if fault == "estimate" else "Cost.zero()"
    source = f"""
import attrs
from dicast import Cost, Score, hookimpl
{UNDESCRIBED[fault]}
@attrs.frozen
class Odd:
    "Score."
    tier = "proxy"
    option: "{"Decimal" if fault == "type" else "int"}" = 1

    def estimate(self, subject):
        return {estimate}

    def score(self, subject):
        return Score(1.0)

@hookimpl
def dicast_metrics():
    return [Odd]
"""
    install("dicast-odd", "1.0", {"dicast": {"odd": "dicast_odd"}}, dicast_odd=source)
    plugins = listed(shop, "--load")
    assert (plugins["odd"]["status"], plugins["odd"]["components"]) == ("broken", None)
    assert message in plugins["odd"]["error"]
    assert plugins["proxy"]["status"] == "ok"
    assert message in shop.dicast("plugins", "odd").out


def test_one_plugin_is_shown_with_its_options_and_no_other_is_imported(shop, bomb, install):
    install("dicast-wide", "1.0", {"dicast": {"wide": "dicast_wide"}}, dicast_wide=OPTIONS)
    lines = shop.dicast("plugins", "wide").out.splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["PLUGIN", "DISTRIBUTION", "STATUS"],
        ["wide", "dicast-wide", "1.0", "ok"],
    ]
    assert [line.split()[0] for line in lines[2:]] == ["wide/open", "word", "count", "price", "grader", "extra"]
    assert not bomb.exists()
    assert list(listed(shop, "wide")) == ["wide"]
    assert listed(shop, "wide")["wide"] == listed(shop, "--load")["wide"]
    assert listed(shop, "bomb")["bomb"]["status"] == "broken"
    assert "this plugin is broken" in shop.dicast("plugins", "bomb").out
    assert "did you mean 'wide'?" in (done := shop.dicast("plugins", "wied")).err
    assert done.code == 2


HELPED = """
import click
from pathlib import Path

Path(__file__).with_name("imported").write_text("it was imported")
made = click.Command("made", help="Nobody reads this.")

@click.group(
    help="Say it in the decorator. There is more.",
)
@click.option("--x", help="An option.")
def given(): ...

@click.command(help=made.help)
def computed(): ...

@click.command()
def described():
    '''Describe
    what \x1b[31mhas margins.

margin

    There is more.
    '''

@click.command()
async def lengthy():
    "Say more in a single sentence than there is room for in a line of eighty characters."
"""


def test_help_has_a_line_for_every_command_and_imports_none(shop, install, tmp_path):
    names = ("given", "described", "lengthy", "computed", "made", "missing")
    targets = {f"x-{name}": f"dicast_helped:{name}" for name in names} | {"x-gone": "gone.away:gone"}
    install("dicast-helped", "3.1", {"dicast.commands": targets}, dicast_helped=HELPED)
    lines = shop.dicast("--help").out.splitlines()
    assert {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  x-")} == {
        "x-given": "Say it in the decorator. (dicast-helped)",
        "x-described": r"Describe what \u001b[31mhas margins. (dicast-helped)",
        "x-lengthy": "Say more in a single sentence than there is r… (dicast-helped)",
        **dict.fromkeys(("x-computed", "x-made", "x-missing", "x-gone"), "(dicast-helped)"),
    }
    assert max(map(len, lines)) <= 79
    assert not (tmp_path / "site" / "imported").exists()


def test_every_command_of_our_own_says_in_its_line_what_it_is_for(shop):
    lines = shop.dicast("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line for line in lines if not re.match(r"  \w+ +[A-Z].{15,}\.( \(dicast-[a-z-]+\))?$", line)] == []


def test_a_broken_plugin_disturbs_no_other(shop, bomb):
    shop.rows(1)
    assert shop.run("metrics: [fake/act]\n").code == 0
    assert not bomb.exists()
    result = listed(shop, "--load")
    assert result["bomb"]["status"] == "broken"
    for word in ("RuntimeError", "this plugin is broken"):
        assert word in result["bomb"]["error"]
    assert result["fake"]["status"] == "ok"
    schema = shop.dicast("schema")
    assert schema.code == 0
    assert "fake/act" in schema.out
    assert "bomb" in schema.err


def test_naming_a_broken_plugin_fails_with_all_there_is_to_know(shop, bomb):
    shop.rows(1)
    done = shop.run("metrics: [fake/act, bomb/anything]\n")
    assert done.code == 2
    assert done.json["error"]["kind"] == "PluginError"
    for word in ("bomb", "dicast-bomb", "2.0", "dicast_bomb", "RuntimeError", "this plugin is broken", "p.yaml:2:"):
        assert word in done.json["error"]["message"]


def test_a_name_that_two_distributions_offer_is_refused_naming_both(shop, install):
    for number in (1, 2):
        install(f"dicast-good{number}", "1.0", {"dicast": {"good": f"good{number}"}}, **{f"good{number}": GOOD})
    shop.rows(1)
    assert listed(shop)["good"]["status"] == "duplicate"
    done = shop.run("metrics: [good/fine]\n")
    assert done.code == 2
    assert "dicast-good1" in done.json["error"]["message"]
    assert "dicast-good2" in done.json["error"]["message"]
    assert shop.run("metrics: [fake/act]\n").code == 0


@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_blocked_plugin_is_never_imported(shop, bomb, monkeypatch, how):
    shop.rows(1)
    if how == "variable":
        monkeypatch.setenv("DICAST_BLOCK", "bomb, other")
        assert listed(shop, "--load")["bomb"]["status"] == "blocked"
    done = shop.run("metrics: [bomb/x]\n" + ("plugins: {block: [bomb]}\n" if how == "file" else ""))
    assert done.code == 2
    assert "block" in done.json["error"]["message"]
    assert not bomb.exists()


def test_a_component_that_is_not_installed_says_what_there_is(shop):
    shop.rows(1)
    done = shop.run("metrics: [fake/nothing]\n")
    assert done.code == 2
    for name in ("act", "truth", "wait"):
        assert name in done.json["error"]["message"]
    done = shop.run("metrics: [nowhere/at_all]\n")
    assert "nowhere" in done.json["error"]["message"]
    assert done.code == 2


def test_a_plugin_adds_a_command(shop, install):
    install("dicast-hello", "3.1", {"dicast.commands": {"greet": "dicast_hello:greet"}}, dicast_hello=COMMAND)
    helped = shop.dicast("--help")
    assert helped.code == 0
    (line,) = (line for line in helped.out.splitlines() if "greet" in line)
    assert "dicast-hello" in line
    done = shop.dicast("greet", "you")
    assert (done.code, done.out) == (0, "hello you\n")
    assert shop.dicast("greet", "seven").code == 7
    assert shop.dicast("greet").code == 2
    assert "'greet'" in shop.dicast("gret", "you").err


def test_a_command_is_imported_only_when_it_is_called(shop, install, tmp_path):
    install("dicast-bomb", "2.0", {"dicast.commands": {"boom": "dicast_bomb:boom"}}, dicast_bomb=BOMB)
    for arguments in (["--help"], ["plugins"], ["verdicts"]):
        shop.process(*arguments)
    assert not (tmp_path / "site" / "imported").exists()
    done = shop.dicast("boom")
    assert done.code == 2
    for word in ("boom", "dicast-bomb", "2.0", "RuntimeError", "this plugin is broken"):
        assert word in done.err


@pytest.mark.parametrize("target", ["dicast_hello:missing", "dicast_nowhere:greet", "dicast_hello"])
def test_a_command_with_a_wrong_target_is_the_plugins_fault(shop, install, target):
    install("dicast-hello", "3.1", {"dicast.commands": {"greet": target}}, dicast_hello=COMMAND)
    assert "greet" in shop.dicast("--help").out
    done = shop.dicast("greet", "you")
    assert done.code == 2
    assert "dicast-hello" in done.err


def test_a_command_of_a_plugin_cannot_take_the_place_of_the_kernels(shop, install):
    install("dicast-hello", "3.1", {"dicast.commands": {"run": "dicast_hello:greet"}}, dicast_hello=COMMAND)
    shop.rows(1)
    assert shop.run("metrics: [fake/act]\n").json["scored"] == 1


def test_two_distributions_with_one_command_are_refused_naming_both(shop, install):
    for number in (1, 2):
        name = f"dicast_hello{number}"
        install(f"dicast-hello{number}", "1", {"dicast.commands": {"greet": f"{name}:greet"}}, **{name: COMMAND})
    assert "greet" in shop.dicast("--help").out
    done = shop.dicast("greet", "you")
    assert done.code == 2
    assert "dicast-hello1" in done.err
    assert "dicast-hello2" in done.err


def test_the_fault_of_a_plugins_command_is_not_called_a_defect_in_dicast(shop, install):
    install("dicast-hello", "3.1", {"dicast.commands": {"greet": "dicast_hello:greet"}}, dicast_hello=COMMAND)
    done = shop.dicast("greet", "nobody")
    assert done.code != 0
    assert "nobody is there" in done.err


def test_traceback_shows_where_a_plugin_failed_to_import(shop, install):
    install("dicast-hurt", "1.0", {"dicast": {"hurt": "dicast_hurt"}}, dicast_hurt="import nope_missing")
    shown = shop.dicast("plugins", "hurt")
    assert "nope_missing' (dicast_hurt.py:1)" in " ".join(shown.out.split())
    assert shown.err == ""
    assert 'dicast_hurt.py", line 1' in shop.dicast("plugins", "hurt", "--traceback").err
    shop.rows("x")
    checked = shop.dicast("check", shop.pipeline("metrics: [hurt/one]\n").name, "--traceback")
    assert checked.code == 2
    assert 'dicast_hurt.py", line 1' in checked.err
