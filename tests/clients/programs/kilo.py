"""Kilo, a descendant of OpenCode."""

from pathlib import Path

from tests.clients.programs.opencode import OpenCode


class Kilo(OpenCode):
    """`kilo run`, which is set up and speaks as OpenCode."""

    name = "kilo"
    client_name = "kilo"

    def configure(self, home: Path, url: str) -> None:
        """The same settings in a file and a directory of its own."""
        super().configure(home, url)
        directory = home / ".config" / "kilo"
        (home / ".config" / "opencode").rename(directory)
        settings = (directory / "opencode.json").rename(directory / "kilo.json")
        settings.write_text(settings.read_text().replace("opencode.ai/config.json", "app.kilo.ai/config.json"))

    def environment(self, url: str) -> dict[str, str]:
        """Nobody is called home."""
        renamed = {name.replace("OPENCODE", "KILO"): value for name, value in super().environment(url).items()}
        return renamed | {"KILO_DISABLE_SESSION_INGEST": "1", "KILO_TELEMETRY_LEVEL": "off"}

    def arguments(self, prompt: str) -> list[str]:
        """One prompt, with its events on standard output."""
        return ["kilo", *super().arguments(prompt)[1:]]
