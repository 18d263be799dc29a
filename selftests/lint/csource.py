# SPDX-License-Identifier: GPL-2.0
"""A minimal parser of C in kernel style, for the scripts in this folder and mutations.py.

It relies on a rule that checkpatch enforces: the braces of a function are alone in the first
column.
"""

import re

# A comment, string or character constant. quiet() replaces it by blanks and keeps line breaks.
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                   re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.M)


def quiet(text):
    """The text without comments and strings; line numbers do not change."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return NOISE.sub(blank, text)


def includes(text):
    """Yield (line, "<" or '"', name) of every include."""
    kept = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.S)
    for match in INCLUDE.finditer(kept):
        yield kept.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


class Function:
    def __init__(self, name, static, void, head, first, last, body):
        self.name = name
        self.static = static
        self.void = void        # returns nothing
        self.head = head        # line where the declaration begins
        self.first = first      # line of "{"
        self.last = last        # line of "}"
        self.body = body        # lines, without comments and strings


def functions(text):
    """Yield every function that is defined in the text."""
    lines = quiet(text).split("\n")
    start = 0
    while start < len(lines):
        if lines[start].rstrip() != "{":
            start += 1
            continue
        head = start
        while head and lines[head - 1].strip() and \
                not re.match(r"[#}{]|.*;\s*$|.*\\$", lines[head - 1]):
            head -= 1
        end = start
        while end < len(lines) - 1 and not lines[end].startswith("}"):
            end += 1
        declaration = " ".join(lines[head:start])
        name = re.search(r"(\w+)\s*\(", declaration)
        if name and "=" not in declaration:
            before = declaration[:name.start()]
            yield Function(name.group(1), bool(re.search(r"\bstatic\b", before)),
                           bool(re.search(r"\bvoid\s+(__\w+\s+)*$", before)),
                           head + 1, start + 1, end + 1, lines[start:end + 1])
        start = end + 1


# The beginning of the definition of a variable that other files can use.
VARIABLE = re.compile(r"^(?!static\b|extern\b|typedef\b)[a-z][\w \t*]*?\b(\w+)(\[[^;=]*\])*"
                      r"\s*(?:=|;)")


def definitions(text):
    """Yield (line, name) of each function and variable that other files can use."""
    lines = quiet(text).split("\n")
    for function in functions(text):
        # "TEST(name)" in front of "{" is a macro, not a function: macros have names in capitals.
        if not function.static and not function.name.isupper():
            yield function.head, function.name
        for number in range(function.head - 1, function.last):
            lines[number] = ""
    depth = 0
    for number, line in enumerate(lines, 1):
        match = VARIABLE.match(re.sub(r"\b__\w+", "", line)) if depth == 0 else None
        if match:
            yield number, match.group(1)
        depth += line.count("{") - line.count("}")


def mentions(name, text):
    """Yield (line, word) of each word that may name a function or variable of another file. In a
    header, only macros and inline functions are searched, not prototypes."""
    lines = quiet(text).split("\n")
    kept = range(len(lines))
    if name.endswith(".h"):
        inline = {number for function in functions(text)
                  for number in range(function.first - 1, function.last)}
        macro, more = set(), False
        for number, line in enumerate(lines):
            more = more or bool(re.match(r"\s*#\s*define\b", line))
            if more:
                macro.add(number)
            more = more and line.rstrip().endswith("\\")
        kept = sorted(inline | macro)
    own = {function.name for function in functions(text) if function.static}
    # In macros and inline functions of a header, skip the names that the header itself declares.
    # uses() counts such a name as used by each .c file that mentions the macro or function, and
    # not as used by the header.
    if name.endswith(".h"):
        rest = "\n".join(line for number, line in enumerate(lines) if number not in set(kept))
        own |= set(re.findall(r"[A-Za-z_]\w+", rest))
    for number in kept:
        line = re.sub(r"\b(struct|enum|union)\s+\w+", "", lines[number])
        for word in re.findall(r"(?<![.>\w])[A-Za-z_]\w+", line):
            if word not in own:
                yield number + 1, word


def expansions(text):
    """Return {macro or function in a header: the words in its definition}."""
    found = {function.name: set(re.findall(r"(?<![.>\w])[A-Za-z_]\w+", "\n".join(function.body)))
             for function in functions(text)}
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", quiet(text),
                             re.M):
        found[match.group(1)] = set(re.findall(r"(?<![.>\w])[A-Za-z_]\w+", match.group(2)))
    return found


def stem(name):
    return name.rsplit(".", 1)[0]


def uses(texts):
    """For texts, which is {file: text}, return {name: .c file that defines it} and
    {file: {other: (line, name)}}: the first place at which a file uses a name of another one. A
    header may use names of the .c file that belongs to it. A .c file that mentions a macro or
    function of a header also uses the names in its definition."""
    owner = {word: name for name, text in texts.items() if name.endswith(".c")
             for _, word in definitions(text) if word != "main"}
    meaning = {}
    for name, text in texts.items():
        if name.endswith(".h"):
            meaning.update(expansions(text))
    wanted = {name: {} for name in texts}
    for name, text in texts.items():
        for line, word in mentions(name, text):
            words, todo = set(), [word]
            while todo:
                one = todo.pop()
                if one not in words:
                    words.add(one)
                    todo += meaning.get(one, ()) if name.endswith(".c") else ()
            for one in sorted(words):
                other = owner.get(one)
                if other and stem(other) != stem(name):
                    wanted[name].setdefault(other, (line, one))
    return owner, wanted
