"""What the configuration file says is taken exactly, or refused with the key that is wrong."""

import pytest

from whisper_tui.config import load
from whisper_tui.config.configuration import Configuration
from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.run import Limits
from whisper_tui.system.state_directory import Directories


@pytest.fixture
def home(tmp_path):
    (tmp_path / "config").mkdir()
    return Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")


@pytest.fixture
def configured(home):
    def write(text):
        path = home.config / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o600)
        return load(home)

    return write


def test_without_a_file_everything_is_as_usual(home, tmp_path):
    assert load(home) == Configuration()
    assert load(home._replace(config=tmp_path / "nowhere")) == Configuration()


def test_settings_and_rules_are_read(configured):
    configuration = configured(
        """
        [supervisor]
        workers = 3
        when_agent_cancels = "stop"
        [limits]
        cpu_s = 60
        processes = 9
        [retention]
        days = 0.5
        [cockpit]
        theme = "light"
        [[rules.deny]]
        name = "no push"
        text = "git push --force"
        justification = "ask first"
        [[rules.allow]]
        name = "status"
        argv = ["git", "status"]
        """
    )
    assert (configuration.supervisor.workers, configuration.supervisor.when_agent_cancels) == (3, "stop")
    assert configuration.limits == Limits(cpu_s=60, processes=9)
    assert (configuration.retention.days, configuration.retention.gigabytes) == (0.5, 5.0)
    assert configuration.cockpit.theme == "light"
    assert configuration.rules.broken is None
    assert configuration.rules.deny[0].matches(Shell(text="git push --force"))
    assert configuration.rules.allow[0].matches(Argv(program="git", args=("status",)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[supervisor\nworkers = 3", "line 1"),
        ("x = 1\nx = 2\n", "line 2"),
        (b"theme = '\xff'", "UTF-8"),
        ("[supervizor]\nworkers = 3", "'supervizor'; did you mean 'supervisor'"),
        ("[supervisor]\nworker = 3", "'worker' in [supervisor]; did you mean 'workers'"),
        ("[supervisor]\nfrobnicate = 3", "known are"),
        ("[supervisor]\nworkers = 'many'", "supervisor.workers: "),
        ("[supervisor]\nworkers = 0", "supervisor.workers: "),
        ("[supervisor]\nwhen_agent_cancels = 'explode'", "supervisor.when_agent_cancels: "),
        ("[limits]\nmemory_bytes = 1000", "limits.memory_bytes: "),
        ("[limits]\nmemory = 1", "'memory' in [limits]; did you mean 'memory_bytes'"),
        ("[retention]\ndays = 0", "retention.days: "),
        ("supervisor = 3", "must be a table"),
        ("[cockpit]\ncolour = 'red'", "'colour' in [cockpit]"),
    ],
)
def test_mistakes_are_reported_with_the_file_and_the_key(configured, home, text, complaint):
    with pytest.raises(BadConfiguration) as error:
        configured(text)
    assert str(home.config / "config.toml") in error.value.message
    assert complaint in error.value.message
    assert error.value.hint


DENIED = '[[rules.deny]]\nname = "good"\ntext = "rm -rf /"\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[rules.allow]]\nname = "x"\n', "needs one of argv, text"),
        ('[[rules.allow]]\nname = "x"\nargv = ["a"]\ntext = "a"\n', "needs one of argv, text"),
        ('[[rules.allow]]\ntext = "a"\n', "rules.allow 1.name"),
        ('[[rules.allow]]\nname = "x"\ntexts = "a"\n', "did you mean 'text'"),
        ('[[rules.allow]]\nname = "x"\nargv = "a b"\n', "rules.allow 1.argv"),
        ('[[rules.deny]]\nname = "y"\nargv = [1]\n', "rules.deny 2.argv"),
        ('[[rules.permit]]\nname = "x"\ntext = "a"\n', "'permit'"),
    ],
)
def test_broken_rules_are_no_error_but_everything_is_asked_and_what_is_denied_stays_denied(configured, text, complaint):
    rules = configured(DENIED + text).rules
    assert complaint in rules.broken
    assert rules.deny[0].matches(Shell(text="rm -rf /"))


@pytest.mark.parametrize("text", ["rules = 3", "[rules]\ndeny = 3", "[rules.deny]\nname = 'x'\ntext = 'a'"])
def test_rules_of_another_shape_are_broken_too(configured, text):
    assert configured(text).rules.broken


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_change_is_refused(configured, home, mode):
    configured("")
    (home.config / "config.toml").chmod(mode)
    with pytest.raises(BadConfiguration, match="changed by other users"):
        load(home)


def test_a_directory_instead_of_the_file_is_reported(home):
    (home.config / "config.toml").mkdir()
    with pytest.raises(BadConfiguration, match="cannot be read"):
        load(home)


def test_places_are_read_with_the_options_of_their_engine(configured):
    gpu1, jobs = configured(
        """
        [places.gpu1]
        by = "ssh"
        host = "me@gpu1.example"
        workspace = "/data/project"
        [places.jobs]
        by = "slurm"
        gpus = 2
        """
    ).places
    assert (gpu1.name, gpu1.by, dict(gpu1.options), gpu1.workspace) == (
        "gpu1",
        "ssh",
        {"host": "me@gpu1.example"},
        "/data/project",
    )
    assert (jobs.name, jobs.by, dict(jobs.options)) == ("jobs", "slurm", {"gpus": "2"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("places = 1", "'places' must be a table"),
        ("[places]\ngpu1 = 'ssh'", "places.gpu1 must be a table"),
        ("[places.here]\nby = 'ssh'", "names this machine"),
        ("[places.gpu1]\nby = 'telnet'", "places.gpu1.by is 'telnet', which is unknown"),
        ("[places.gpu1]\nby = 'ssh'\nhots = 'x'", "did you mean 'host'?"),
    ],
)
def test_a_wrong_place_is_an_error_that_names_the_file_and_says_what_to_do(configured, home, text, said):
    with pytest.raises(BadConfiguration) as refused:
        configured(text)
    assert str(refused.value).startswith(f"{home.config / 'config.toml'}: ")
    assert said in str(refused.value)
    assert refused.value.hint
