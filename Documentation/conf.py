# SPDX-License-Identifier: GPL-2.0
"""Sphinx settings for "make html". The documents need no extension: they are readable as text."""

import pathlib
import re

HEADER = pathlib.Path(__file__).resolve().parent.parent / "include/uapi/linux/af_rdma.h"

project = "AF_RDMA"
author = "AF_RDMA maintainers"
copyright = "2026, AF_RDMA maintainers"     # pylint: disable=redefined-builtin
release = re.search(r'^#define AFRDMA_VERSION\s+"(.*)"$', HEADER.read_text(), re.M)[1]
version = release
language = "en"
root_doc = "index"
highlight_language = "none"     # literal blocks are output and commands, unless they say otherwise
smartquotes = False             # "--" in text is an option
html_theme = "alabaster"
html_theme_options = {
    "description": "TCP sockets that move to RDMA in the background",
    "page_width": "64em",
    "fixed_sidebar": True,
}
html_show_copyright = False
html_copy_source = False
