from __future__ import annotations

from reverie.apps.cli import ChatController, standard


class Typed:
    """A chat as commands see it, that keeps what was said."""

    def __init__(self, desk: ChatController) -> None:
        self.desk = desk
        self.commands = standard()
        self.heard: list[str] = []
        self.width = 80

    def say(self, text: str, style: str = "") -> None:
        self.heard.append(text)

    def dialog(self, name: str) -> bool:
        return False

    def types(self, text: str) -> str:
        self.heard = []
        self.commands.run(self, text)
        return "\n".join(self.heard)
