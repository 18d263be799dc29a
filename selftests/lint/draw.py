#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print a random sample of comments and function heads, for a reader who does not know the code.

    draw.py [SEED [COMMENTS [HEADS]]]       7, 60 and 20 by default

A comment is printed with the line beside or below it. Comments that the reader has to read twice
should be rewritten. The sample is drawn from the C, Python and shell files that git knows; each
comment of at least WORDS words is drawn with the same probability, however long it is.
"""

import pathlib
import random
import re
import subprocess
import sys

import csource

SRC = pathlib.Path(__file__).resolve().parent.parent.parent
C_COMMENT = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
SCRIPT_COMMENT = re.compile(r"(?:^[ \t]*#[ \t].*\n)+|\S[ \t]+# .*", re.M)
WORDS = 4       # comments with fewer words are not drawn


def files():
    known = subprocess.run(["git", "-C", SRC, "ls-files"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    for name in known:
        if name.endswith((".c", ".h", ".py", ".sh")) and (SRC / name).is_file():
            yield name, (SRC / name).read_text()


def comments(name, text):
    pattern = C_COMMENT if name.endswith((".c", ".h")) else SCRIPT_COMMENT
    for match in pattern.finditer(text):
        words = match.group()
        if words.startswith('"') or re.search("SPDX|Copyright", words) or \
                len(re.findall(r"\w+", words)) < WORDS:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = text.find("\n", end + 1) if text[match.end():end].strip() == "" else end
        yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}", text[begin:end].rstrip()


def heads(name, text):
    if not name.endswith((".c", ".h")):
        return
    lines = text.split("\n")
    for function in csource.functions(text):
        yield f"{name}:{function.head}", "\n".join(lines[function.head - 1:function.first - 1])


def draw(rng, found, count):
    for place, text in rng.sample(found, min(count, len(found))):
        print(f"\n--- {place}\n{text}")


def main():
    seed, wanted_comments, wanted_heads = (int(word) for word in
                                           (sys.argv[1:] + ["7", "60", "20"][len(sys.argv) - 1:]))
    rng = random.Random(seed)
    texts = list(files())
    draw(rng, [one for name, text in texts for one in comments(name, text)], wanted_comments)
    draw(rng, [one for name, text in texts for one in heads(name, text)], wanted_heads)


main()
