"""The words, operators and redirections of a shell line, as a shell takes them apart.

The only reader of shell syntax. One pass by hand, no regular expression. Quotes, here-documents and
substitutions are read; the text of a substitution is a line, and returned as such. `unclear` names
the first construct whose effect depends on more than the line: a strict reader (`plain_commands`)
refuses it, a lax one (`shell_commands`) reads on.

A leaf: it imports nothing, so that a hook can use it without the engine.
"""

from __future__ import annotations

MAX_PLAIN = 16
MAX_PLAIN_CHARACTERS = 10_000
_QUIET = ("2>/dev/null", "2>&1")
_GLOBS = "*?["


class ShellPiece:
    """What the scan gives: a word, an operator, or the target of a redirection."""

    __slots__ = ("globs", "kind", "text", "written")

    def __init__(self, kind: str, text: str, written: str = "", *, globs: bool = False) -> None:
        self.kind = kind
        self.text = text
        self.written = written  # a spelling that a shell reads as just this text
        self.globs = globs


class ShellScan:
    """One pass over a line; `inner` are the texts of substitutions."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.unclear = ""
        self.is_open = False  # the line ends within a quote or an escape
        self.inner: list[str] = []
        self._waiting: list[str] = []  # what ends the here-documents that begin on this line
        self._out: list[ShellPiece] = []

    def pieces(self) -> list[ShellPiece]:
        line = self.line
        while self.at < len(line):
            sign = line[self.at]
            if sign in "\r\n#()<>":
                self._doubt(f"the command has {sign!r} outside quotes")
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
            elif sign != "2" or not self._quiet():
                self._take_word()
        return self._out

    def _doubt(self, why: str) -> None:
        self.unclear = self.unclear or why

    def _quiet(self) -> bool:
        """Whether an error output that goes nowhere, or to the output, is written here alone."""
        for text in _QUIET:
            end = self.at + len(text)
            if self.line.startswith(text, self.at) and self.line[end : end + 1] in " \t|;":
                self._out.append(ShellPiece("quiet", text, text))
                self.at = end
                return True
        return False

    def _operator(self, sign: str) -> None:
        if sign in "&|" and self.line.startswith(sign * 2, self.at):
            sign *= 2
        elif sign == "&":
            self._doubt("the command has '&' outside quotes")
            if self.line.startswith("&>", self.at):
                self.at += 1
                self._scan_redirection(">")
                return
        self.at += len(sign)
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
        return self._word().text

    def _take_word(self) -> None:
        start = self.at
        word = self._word()
        after = self.line[self.at : self.at + 1]
        if word.text.isdigit() and after and after in "<>" and word.text == word.written:
            return  # the number of a file descriptor
        if self.at == start:  # nothing that a word can begin with
            self.at += 1
            return
        self._out.append(word)

    def _word(self) -> ShellPiece:
        line, parts, written, globs = self.line, list[str](), list[str](), False
        while self.at < len(line):
            sign = line[self.at]
            if sign in " \t\r\n;&|<>()":
                break
            if sign in "'\"":
                parts.append(self._single() if sign == "'" else self._double())
                written.append(_quote(parts[-1]))
                if any((one < " " and one != "\t") or one == "\x7f" for one in parts[-1]):
                    self._doubt("there is a control character in quotes")
                continue
            if not sign.isalnum() and sign not in "_./,:=@%+^]-" + _GLOBS:
                self._doubt(f"the command has {sign!r} outside quotes")
            if sign == "\\":
                following = line[self.at + 1 : self.at + 2]
                parts.append("" if following == "\n" else following)
                self.is_open = self.is_open or not following
                self.at += 2
            elif sign == "`" or line.startswith("$(", self.at):
                parts.append(self._substitution(sign))
            else:
                globs = globs or sign in _GLOBS
                parts.append(sign)
                self.at += 1
            written.append(parts[-1])
        return ShellPiece("word", "".join(parts), "".join(written), globs=globs)

    def _single(self) -> str:
        start = self.at + 1
        end = self.line.find("'", start)
        if end < 0:
            end = self._end_open()
        self.at = end + 1
        return self.line[start:end]

    def _double(self) -> str:
        line, parts = self.line, list[str]()
        self.at += 1
        while self.at < len(line):
            sign = line[self.at]
            if sign == '"':
                self.at += 1
                return "".join(parts)
            escapes = sign == "\\" and line[self.at + 1 : self.at + 2] in (
                '"',
                "\\",
                "$",
                "`",
                "\n",
            )
            if escapes or sign in "$`!":
                self._doubt('there is a $, `, ! or escape in a text in " quotes')
            if escapes:
                parts.append(line[self.at + 1].replace("\n", ""))
                self.at += 2
            elif sign == "`" or line.startswith("$(", self.at):
                parts.append(self._substitution(sign))
            else:
                parts.append(sign)
                self.at += 1
        self._end_open()
        return "".join(parts)

    def _end_open(self) -> int:
        self.is_open = True
        self._doubt("a quote is not closed")
        return len(self.line)

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


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- Lines that mean to any shell exactly what they mean here: plain words, pipes and chains.


class PlainCommand:
    """One command of a plain line, and the operator that follows it."""

    __slots__ = ("then", "words")

    def __init__(self, words: list[ShellPiece], then: str) -> None:
        self.words = words
        self.then = then

    def __str__(self) -> str:
        return " ".join(word.written for word in self.words)


def plain_commands(line: str) -> tuple[list[PlainCommand], str]:
    """Return the commands of a plain line; or none, and why the line is not plain.

    Substitutions, variables, redirections (except `2>/dev/null` and `2>&1`), brace and tilde
    expansion, escapes, comments, line breaks and control characters are not plain.
    """
    if len(line) > MAX_PLAIN_CHARACTERS:
        return [], f"the command is longer than {MAX_PLAIN_CHARACTERS:,} characters"
    scan, found, words = ShellScan(line.strip(" \t")), list[PlainCommand](), list[ShellPiece]()
    for piece in scan.pieces():
        if piece.kind == "end":
            found.append(PlainCommand(words, piece.text))
            words = []
        else:
            words.append(piece)
    if words or not found or found[-1].then != ";":
        found.append(PlainCommand(words, ""))
    why = scan.unclear
    if not why and len(found) > MAX_PLAIN:
        why = f"the line has more than {MAX_PLAIN} commands"
    if not why and not all(one.words and one.words[0].kind == "word" for one in found):
        why = "a command is empty"
    return ([], why) if why else (found, "")


def plain_words(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one plain command; None for anything else."""
    found, _ = plain_commands(line)
    if len(found) != 1 or any(word.globs or word.kind == "quiet" for word in found[0].words):
        return None
    return tuple(word.text for word in found[0].words)
