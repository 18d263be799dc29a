# SPDX-License-Identifier: GPL-2.0
# make                  the module for the running kernel, and the tools
# make KDIR=...         the module for another kernel; CC=clang or LLVM=1 as usual
# make modules_install  the module (root)
# make install          the tools, and the headers for programs: DESTDIR, PREFIX
# make demo             two VMs: a file, iperf3 and a plain TCP client, step by step
# make check            unit, builds, lint, guests of all kinds; PARTS=rotate: and some parts
# make check-quick      the inner loop: about three minutes once it is warm
# make check-full       everything there is, in parts, JOBS=2: two at once; what has passed is left out
# make status           what each stage and part came to last, and on which commit
# make check-STAGE      one stage or part: "selftests/check.sh list" has the names
# make faults           the fault rows: ROWS=F8,F15@a and SEED=7 repeat some of them
# make programs         suites and programs of others, on TCP and on AF_RDMA: tables
# make bench            AF_RDMA, SMC-R, TCP and raw verbs in two VMs: ONLY=stream,rtt for some
# make bench-quick      what a message costs, counted; fails if it costs more than it may
# make unit lint        the same for these two
# make mutations        put bugs in, one at a time: which test turns red?
# make clean

release := $(shell uname -r)
KDIR ?= $(firstword $(wildcard /lib/modules/$(release)/build) $(newest-headers))
cache := $(or $(AFRDMA_CACHE),$(HOME)/.cache/afrdma)
newest-headers = $(shell ls -dv /usr/src/linux-headers-*/Module.symvers \
	$(cache)/linux-headers-*/root/usr/src/*/Module.symvers 2>/dev/null | tail -n 1 | xargs -r dirname)
# Behind $(MAKE) itself: make passes its jobs on only where a recipe has that word.
kbuild = -C $(KDIR) M=$(CURDIR)

all: modules tools

modules: kdir
	$(MAKE) $(kbuild) modules

modules_install: kdir
	@[ -z "$(CONFIG_AFRDMA_BYZANTINE)" ] || { echo "A module that lies is not for installing: see rogue.h" >&2; exit 1; }
	$(MAKE) $(kbuild) modules_install

kdir:
	@[ -n "$(KDIR)" ] || { echo "No headers of kernel $(release): install them, or say KDIR=..." >&2; exit 1; }
	@case "$(KDIR)" in *$(release)*) ;; *) echo "Building for $(KDIR), not for the running kernel $(release)" >&2 ;; esac

tools:
	$(if $(wildcard tools/Makefile),$(MAKE) -C tools)

install:
	$(MAKE) -C tools install

clean:
	$(if $(KDIR),$(MAKE) $(kbuild) clean)
	$(if $(wildcard tools/Makefile),$(MAKE) -C tools clean)
	$(if $(wildcard selftests/Makefile),$(MAKE) -C selftests clean)
	rm -rf build

# The scripts install what they need, build what they test, and say where the
# logs are.
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

faults:
	@selftests/faults/run $(if $(ROWS),--rows $(ROWS)) $(if $(SEED),--seed $(SEED))

programs:
	@selftests/programs/programs.sh

bench:
	@selftests/bench/run $(if $(ONLY),--only $(ONLY)) $(if $(REPS),--reps $(REPS)) $(if $(GUEST),--guest $(GUEST))

bench-quick:
	@selftests/check.sh $@

help:
	@sed -n '2,/^$$/s/^# //p' Makefile

.PHONY: all modules modules_install kdir tools install clean unit lint status check mutations demo faults programs bench bench-quick help
