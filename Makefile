# SPDX-License-Identifier: GPL-2.0
# make                  the module for the running kernel, and the tools
# make KDIR=...         the module for another kernel; CC=clang or LLVM=1 as usual
# make modules_install  the module (root)
# make install          the tools, and the headers for programs: DESTDIR, PREFIX
# make demo             demonstration in two VMs: a file, iperf3 and a TCP client
# make demo-netns       the same between two network namespaces of one guest, Linux 7.2
# make check            unit tests, builds, lint, all kinds of guests; PARTS=rotate adds some parts
# make check-quick      for development: about three minutes, once everything is built
# make check-full       all tests, in parts; skips parts that have passed; JOBS=2 runs two at once
# make status           last result of each stage and part, with its commit
# make check-STAGE      one stage or part; "selftests/check.sh list" prints the names
# make faults           fault tests; ROWS=F8,F15@a SEED=7 repeats some of them
# make programs         third-party programs and test suites on TCP and on AF_RDMA
# make bench            AF_RDMA, SMC-R, TCP and raw verbs in two VMs; ONLY=stream,rtt selects groups
# make bench-quick      counts what a message costs; fails above the bounds
# make unit lint        these two stages
# make mutations        adds bugs to the module, one at a time: does a test fail?
# make html             the documents as HTML, in build/html (Sphinx)
# make clean

release := $(shell uname -r)
KDIR ?= $(firstword $(wildcard /lib/modules/$(release)/build) $(newest-headers))
cache := $(or $(AFRDMA_CACHE),$(HOME)/.cache/afrdma)
newest-headers = $(shell ls -dv /usr/src/linux-headers-*/Module.symvers \
	$(cache)/linux-headers-*/root/usr/src/*/Module.symvers 2>/dev/null | \
	tail -n 1 | xargs -r dirname)
# $(MAKE) stays in the recipes: make passes its job server only to lines that contain that word.
kbuild = -C $(KDIR) M=$(CURDIR)

all: modules tools

modules: kdir
	$(MAKE) $(kbuild) modules

modules_install: kdir
	@[ -z "$(CONFIG_AFRDMA_BYZANTINE)" ] || { \
		echo "A module with fault injection must not be installed" >&2; exit 1; }
	$(MAKE) $(kbuild) modules_install

kdir:
	@[ -n "$(KDIR)" ] || { \
		echo "No headers of kernel $(release): install them, or set KDIR=..." >&2; exit 1; }
	@case "$(KDIR)" in *$(release)*) ;; \
	*) echo "Building for $(KDIR), not for the running kernel $(release)" >&2 ;; esac

tools:
	$(if $(wildcard tools/Makefile),$(MAKE) -C tools)

install:
	$(MAKE) -C tools install

clean:
	$(if $(KDIR),$(MAKE) $(kbuild) clean)
	$(if $(wildcard tools/Makefile),$(MAKE) -C tools clean)
	$(if $(wildcard selftests/Makefile),$(MAKE) -C selftests clean)
	rm -rf build

html:
	@command -v sphinx-build >/dev/null || { \
		echo "No sphinx-build: apt install python3-sphinx" >&2; exit 1; }
	@sphinx-build -W --keep-going -q -b html Documentation build/html
	@echo build/html/index.html

# The scripts install the packages that they need, build what they test, and print where the logs
# are.
check:
	@selftests/check.sh all $(PARTS)

check-%:
	@selftests/check.sh $*

unit lint status:
	@selftests/check.sh $@

mutations:
	@selftests/mutations.py $(if $(ONLY),--only '$(ONLY)')

demo:
	@selftests/demo/run.sh

demo-netns:
	@selftests/demo/run.sh --netns

faults:
	@selftests/faults/run $(if $(ROWS),--rows $(ROWS)) $(if $(SEED),--seed $(SEED))

programs:
	@selftests/programs/programs.sh

bench:
	@selftests/bench/run $(if $(ONLY),--only $(ONLY)) $(if $(REPS),--reps $(REPS)) \
		$(if $(GUEST),--guest $(GUEST))

bench-quick:
	@selftests/check.sh $@

help:
	@sed -n '2,/^$$/s/^# //p' Makefile

.PHONY: all modules modules_install kdir tools install clean unit lint status check mutations demo \
	demo-netns faults programs bench bench-quick html help
