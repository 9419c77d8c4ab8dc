"""A shell's line as the simple commands it would run, as far as reading can tell. Needs no import: it starts fast.

What only running could tell (a variable nobody set here, what a command prints) becomes `ANY` in its word.
"""

from __future__ import annotations

ANY = "\0"
"""Stands in a word for text that is not known."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
HEX = frozenset("0123456789abcdefABCDEF")


class Unreadable(Exception):
    """A quote or a parenthesis is never closed."""


class Line:
    """One line read: `commands`, each the words of a simple command; `texts`, here-documents; both in order."""

    def __init__(self, text: str, known: dict[str, str] | None = None) -> None:
        self.commands: list[list[str]] = []
        self.texts: list[str] = []
        self._text, self._at = text, 0
        self._known = {} if known is None else known
        self._words: list[str] = []
        self._word: str | None = None
        self._bare = True  # no part of the word is quoted
        self._skip = False  # the next word is where a redirection goes
        self._awaited: list[str] = []
        self._read()

    def _read(self) -> None:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_command()

    def _step(self, char: str) -> None:
        if char == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            self._add("" if following == "\n" else following, start=following != "\n")
            self._at += 2
        elif char == "'":
            self._quote(self._until("'", self._at + 1))
        elif char == '"':
            self._at += 1
            self._double()
        elif char == "$":
            self._dollar(False)
        elif char == "`":
            self._backticks()
        elif char in " \t\r":
            self._end_word()
            self._at += 1
        elif char in "\n;&|()":
            self._operator(char)
        elif char in "<>":
            self._redirect()
        elif char == "#" and self._word is None:
            self._at = (self._text + "\n").index("\n", self._at)
        else:
            self._add(char)
            self._at += 1

    def _add(self, text: str, start: bool = True) -> None:
        if start or self._word is not None:
            self._word = (self._word or "") + text

    def _quote(self, end: int) -> None:
        self._add(self._text[self._at + 1 : end])
        self._bare, self._at = False, end + 1

    def _until(self, closing: str, start: int) -> int:
        end = self._text.find(closing, start)
        if end < 0:
            raise Unreadable
        return end

    def _double(self) -> None:
        self._add("")
        self._bare = False
        while (char := self._text[self._at : self._at + 1]) != '"':
            if not char:
                raise Unreadable
            if char == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                self._add("" if following == "\n" else following if following in '$`"\\' else char + following)
                self._at += 2
            elif char == "$":
                self._dollar(True)
            elif char == "`":
                self._backticks()
            else:
                self._add(char)
                self._at += 1
        self._at += 1

    def _dollar(self, inside: bool) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "(":
            self._substitution(self._at + 2)
        elif following == "{":
            end = self._until("}", self._at)
            self._variable(self._text[self._at + 2 : end], end + 1, inside)
        elif following in NAME and following:
            end = self._at + 1
            while self._text[end : end + 1] in NAME and end < len(self._text):
                end += 1
            self._variable(self._text[self._at + 1 : end], end, inside)
        elif following == "'" and not inside:
            self._ansi(self._at + 2)
        elif following == '"' and not inside:
            self._at += 1
        else:
            self._add(ANY if following and following in "@*#?!-" else "$")
            self._at += 2 if following and following in "@*#?!-" else 1

    def _variable(self, name: str, end: int, inside: bool) -> None:
        value = self._known.get(name, ANY)
        self._at = end
        if inside or " " not in value:
            self._add(value)
            return
        for word in value.split():  # an unquoted value falls into words
            self._add(word)
            self._end_word()

    def _substitution(self, start: int) -> None:
        depth, at, quote = 1, start, ""
        while depth:
            char = self._text[at : at + 1]
            if not char:
                raise Unreadable
            if char == "\\":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            else:
                depth += (char == "(") - (char == ")")
            at += 1
        self._nested(self._text[start : at - 1])
        self._at = at

    def _backticks(self) -> None:
        end = self._at + 1
        while self._text[end : end + 1] != "`":
            if end >= len(self._text):
                raise Unreadable
            end += 1 + (self._text[end] == "\\")
        self._nested(self._text[self._at + 1 : end].replace("\\`", "`"))
        self._at = end + 1

    def _nested(self, text: str) -> None:
        inner = Line(text, dict(self._known))
        self.commands += inner.commands
        self.texts += inner.texts
        self._add(ANY)

    def _ansi(self, at: int) -> None:
        found = []
        while (char := self._text[at : at + 1]) != "'":
            if not char:
                raise Unreadable
            at += 1
            if char == "\\":
                char, at = _escaped(self._text, at)
            found.append(char)
        self._add("".join(found))
        self._bare, self._at = False, at + 1

    def _operator(self, char: str) -> None:
        self._end_command()
        self._at += 1
        if char == "\n":
            while self._awaited:
                self._here_document(self._awaited.pop(0))

    def _redirect(self) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        start = self._at
        while self._text[self._at : self._at + 1] in ("<", ">", "&", "|", "-"):
            self._at += 1
        operator = self._text[start : self._at]
        if operator.startswith("<<") and not operator.startswith("<<<"):
            self._awaited.append(self._delimiter())
        elif operator.startswith("<<<"):
            self.texts.append(self._text[self._at :].split("\n", 1)[0].strip().strip("'\""))
            self._skip = True
        elif self._text[self._at : self._at + 1] != "(":
            self._skip = True

    def _delimiter(self) -> str:
        rest = self._text[self._at :].lstrip(" \t")
        end = next((place for place, char in enumerate(rest) if char in " \t\n;&|<>)"), len(rest))
        self._at += len(self._text[self._at :]) - len(rest) + end
        return rest[:end].replace("'", "").replace('"', "").replace("\\", "")

    def _here_document(self, delimiter: str) -> None:
        lines = []
        while self._at < len(self._text):
            line, _, _ = self._text[self._at :].partition("\n")
            self._at += len(line) + 1
            if line.strip() == delimiter:
                break
            lines.append(line)
        self.texts.append("\n".join(lines))

    def _end_word(self) -> None:
        if self._word is not None and not self._skip:
            self._words += _braced(self._word) if self._bare else [self._word]
        if self._word is not None:
            self._skip = False
        self._word, self._bare = None, True

    def _end_command(self) -> None:
        self._end_word()
        self._skip = False
        if self._words:
            self.commands.append(self._words)
            if all(assigned(word) for word in self._words):
                self._known.update((name, value) for name, _, value in (word.partition("=") for word in self._words))
        self._words = []


def assigned(word: str) -> bool:
    """Whether a word sets a variable."""
    name, sign, _ = word.partition("=")
    return bool(sign and name) and not name[0].isdigit() and all(char in NAME for char in name)


def _escaped(text: str, at: int) -> tuple[str, int]:
    """What stands behind a backslash in `$'…'`, and where it goes on."""
    char = text[at : at + 1]
    if char in ("x", "u", "U"):
        end = at + 1
        while end - at <= {"x": 2, "u": 4, "U": 8}[char] and text[end : end + 1] in HEX and end < len(text):
            end += 1
        return (chr(int(text[at + 1 : end], 16) % 0x110000), end) if end > at + 1 else (char, at + 1)
    if char and char in "01234567":
        end = at
        while end - at < 3 and text[end : end + 1] in tuple("01234567"):
            end += 1
        return chr(int(text[at:end], 8)), end
    return ESCAPES.get(char, char), at + 1


def _braced(word: str) -> list[str]:
    """`{a,b}` as the words a shell makes of it."""
    before, opened, rest = word.partition("{")
    inner, closed, after = rest.partition("}")
    if not (opened and closed) or "," not in inner or "{" in inner:
        return [word]
    return [found for piece in inner.split(",") for found in _braced(before + piece + after)]
