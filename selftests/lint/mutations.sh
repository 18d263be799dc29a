#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each bug of selftests/mutations/ still fits the code that it is for. KTAP.
exec "$(dirname "${BASH_SOURCE[0]}")/../mutations.py" --check
