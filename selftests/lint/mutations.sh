#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Check that each bug of selftests/mutations/ can still be applied to the code. Prints KTAP.
exec "$(dirname "${BASH_SOURCE[0]}")/../mutations.py" --check
