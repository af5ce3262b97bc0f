"""The tables of places in the configuration: what they say, and what is refused."""

import pytest

from tests.rows import each_row
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.supervisor.places.place_settings import PlaceSettings, read_place


def test_a_place_needs_only_its_engine() -> None:
    assert read_place("gpu1", {"by": "ssh"}) == PlaceSettings("gpu1", "ssh", agents=False)


def test_a_place_says_when_it_is_connected_and_how_much_it_runs() -> None:
    place = read_place("gpu1", {"by": "ssh", "connect": "start", "idle_s": float("inf"), "workers": 4})
    assert (place.connect, place.idle_s, place.workers) == ("start", float("inf"), 4)


def test_the_options_of_an_engine_are_texts_and_those_of_every_place_have_fields() -> None:
    table = {"by": "ray", "cpus": 4, "gpus": 0.5, "python": "/opt/python3.12", "workspace": "/data/project"}
    place = read_place("a100", table)
    assert place.options == {"cpus": "4", "gpus": "0.5"}
    assert (place.python, place.workspace, place.directory) == ("/opt/python3.12", "/data/project", "")
    assert read_place("a100", {**table, "agents": True}).agents
    assert (place.option("gpus"), place.option("memory")) == ("0.5", "")


@each_row(
    ("name", "table", "said"),
    [
        ("two words", {"by": "ssh"}, "a place has a name of letters"),
        ("..", {"by": "ssh"}, "a place has a name of letters"),
        ("gpu1", "ssh", "places.gpu1 must be a table"),
        ("gpu1", {"host": "gpu1"}, "does not say by what it is reached"),
        ("gpu1", {"by": "telnet"}, "places.gpu1.by is 'telnet', which is unknown"),
        ("gpu1", {"by": ["ssh"]}, "which is unknown"),
        ("gpu1", {"by": "ssh", "hots": "gpu1"}, "did you mean 'host'?"),
        ("gpu1", {"by": "ssh", "container": "web"}, "unknown key 'container' in [places.gpu1]"),
        ("web", {"by": "docker"}, "places.web does not say its container"),
        ("gpu1", {"by": "ssh", "host": "-oProxyCommand=sh"}, "places.gpu1.host may not be '-oProxyCommand=sh'"),
        ("gpu1", {"by": "ssh", "host": "a\nb"}, "places.gpu1.host may not be"),
        ("gpu1", {"by": "ssh", "host": True}, "places.gpu1.host must be a text or a number"),
        ("gpu1", {"by": "ssh", "agents": "true"}, "places.gpu1.agents must be true or false"),
        ("gpu1", {"by": "ssh", "connect": "later"}, "places.gpu1.connect may not be 'later'"),
        ("gpu1", {"by": "ssh", "idle_s": "600"}, "places.gpu1.idle_s must be a number of seconds, or inf, not '600'"),
        ("gpu1", {"by": "ssh", "idle_s": -1}, "places.gpu1.idle_s must be a number of seconds, or inf, not -1"),
        ("gpu1", {"by": "ssh", "workers": 1.5}, "places.gpu1.workers must be a whole number, not 1.5"),
        ("gpu1", {"by": "ssh", "workers": True}, "places.gpu1.workers must be a whole number, not True"),
        ("gpu1", {"by": "ssh", "directory": "whisper"}, "places.gpu1.directory must be an absolute path there"),
    ],
)
def test_a_wrong_table_is_refused_with_what_to_do(name: str, table: object, said: str) -> None:
    with pytest.raises(BadConfiguration) as refused:
        read_place(name, table)
    assert said in str(refused.value)
    assert refused.value.hint
