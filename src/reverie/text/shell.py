"""The words, operators and redirections of a shell line, as a shell takes them apart.

One pass by hand, no regular expression. Quotes, here-documents and substitutions are read; what
stands in a substitution is a line of its own, and handed out as such.

A leaf: it imports nothing, so that a hook can use it without the engine.
"""

from __future__ import annotations


class ShellPiece:
    """What the scan gives: a word, an operator, or the target of a redirection."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


class ShellScan:
    """One pass over a line; `inner` are the texts of substitutions."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.inner: list[str] = []
        self._waiting: list[str] = []  # what ends the here-documents that begin on this line
        self._out: list[ShellPiece] = []

    def pieces(self) -> list[ShellPiece]:
        line = self.line
        while self.at < len(line):
            sign = line[self.at]
            if sign in " \t\r":
                self.at += 1
            elif sign == "\n":
                self._line_end()
            elif sign == "#":
                end = line.find("\n", self.at)
                self.at = len(line) if end < 0 else end
            elif line.startswith(("<(", ">("), self.at):
                self.at += 1
                self._scan_substitution()
            elif sign in ";&|()":
                self._operator(sign)
            elif sign in "<>":
                self._scan_redirection(sign)
            else:
                self._take_word()
        return self._out

    def _operator(self, sign: str) -> None:
        if sign == "&" and self.line.startswith("&>", self.at):
            self.at += 1
            self._scan_redirection(">")
            return
        self.at += 1
        self._out.append(ShellPiece("end", sign))

    def _line_end(self) -> None:
        self.at += 1
        waiting, self._waiting = self._waiting, []
        for mark in waiting:
            body = self._document(mark)
            place = len(self._out)
            self._out.insert(place, ShellPiece("fed", body))
        self._out.append(ShellPiece("end", "\n"))

    def _document(self, mark: str) -> str:
        rows: list[str] = []
        while self.at < len(self.line):
            end = self.line.find("\n", self.at)
            end = len(self.line) if end < 0 else end
            row = self.line[self.at : end]
            self.at = end + 1
            if row.strip("\t ") == mark:
                break
            rows.append(row)
        return "\n".join(rows)

    def _scan_redirection(self, sign: str) -> None:
        line = self.line
        if line.startswith("<<<", self.at):
            self.at += 3
            self._out.append(ShellPiece("fed", self._next_word()))
        elif line.startswith("<<", self.at):
            self.at += 3 if line.startswith("<<-", self.at) else 2
            self._waiting.append(self._next_word())
        else:
            while self.at < len(line) and line[self.at] in "<>|":
                self.at += 1
            if self.at < len(line) and line[self.at] == "&":
                self.at += 1
                target = self._next_word()
                if target.isdigit() or target == "-":
                    return
            else:
                target = self._next_word()
            if target and target != "/dev/null":
                self._out.append(ShellPiece(sign, target))

    def _next_word(self) -> str:
        while self.at < len(self.line) and self.line[self.at] in " \t":
            self.at += 1
        return self._word()[0]

    def _take_word(self) -> None:
        start = self.at
        text, quoted = self._word()
        after = self.line[self.at : self.at + 1]
        if text.isdigit() and after and after in "<>" and not quoted:
            return  # the number of a file descriptor
        if self.at == start:  # nothing that a word can begin with
            self.at += 1
            return
        self._out.append(ShellPiece("word", text))

    def _word(self) -> tuple[str, bool]:
        line, parts, quoted = self.line, list[str](), False
        while self.at < len(line):
            sign = line[self.at]
            if sign in " \t\r\n;&|<>()":
                break
            if sign == "'":
                quoted = True
                end = line.find("'", self.at + 1)
                end = len(line) if end < 0 else end
                parts.append(line[self.at + 1 : end])
                self.at = end + 1
            elif sign == '"':
                quoted = True
                self.at += 1
                parts.append(self._double())
            elif sign == "\\":
                following = line[self.at + 1 : self.at + 2]
                parts.append("" if following == "\n" else following)
                self.at += 2
            elif sign == "`" or line.startswith("$(", self.at):
                parts.append(self._substitution(sign))
            else:
                parts.append(sign)
                self.at += 1
        return "".join(parts), quoted

    def _double(self) -> str:
        line, parts = self.line, list[str]()
        while self.at < len(line):
            sign = line[self.at]
            if sign == '"':
                self.at += 1
                break
            if sign == "\\" and line[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                parts.append(line[self.at + 1].replace("\n", ""))
                self.at += 2
            elif sign == "`" or line.startswith("$(", self.at):
                parts.append(self._substitution(sign))
            else:
                parts.append(sign)
                self.at += 1
        return "".join(parts)

    def _substitution(self, sign: str) -> str:
        start = self.at
        if sign == "`":
            end = self.line.find("`", start + 1)
            end = len(self.line) if end < 0 else end
            self.inner.append(self.line[start + 1 : end])
            self.at = end + 1
        else:
            self.at += 1
            self._scan_substitution()
        return self.line[start : self.at]

    def _scan_substitution(self) -> None:
        """From a parenthesis to the one that closes it; quotes inside are passed over."""
        line, depth, start = self.line, 0, self.at + 1
        while self.at < len(line):
            sign = line[self.at]
            if sign == "\\":
                self.at += 1
            elif sign in "'\"":
                end = line.find(sign, self.at + 1)
                self.at = max(end, self.at)
            elif sign == "(":
                depth += 1
            elif sign == ")":
                depth -= 1
                if not depth:
                    break
            self.at += 1
        self.inner.append(line[start : self.at])
        self.at += 1
