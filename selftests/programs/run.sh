#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run in both guests: runs the programs of rows.sh between the two, each row
# on TCP, on AF_SMC and on AF_RDMA. Guest a runs the server, b the client; b writes the table.
#
#	run.sh [--on "tcp rdma"] [ROW...]	the names are in rows.sh; default: all
#
# A row passes if its client succeeds; rows.sh says which programs do not verify bytes. On
# AF_RDMA, each guest must also have received by RDMA what the table of rows.sh requires, by the
# count of the module and by that of the packet filter. A failure that programs.differences lists
# is a skip, and so is any failure on AF_SMC.
set -uo pipefail
set -m			# each job is a process group of its own, so that it can be ended
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
here=$AFR_SRC/selftests/programs
built=$AFR_SRC/build/programs
smctl=/tmp/bin/smctl
data=/tmp/data
# shellcheck source=selftests/programs/rows.sh
. "$here/rows.sh"

families="tcp smc rdma"
[ "${1:-}" != --on ] || { families=$2; shift 2; }
[ -n "$AFR_MODULE" ] || { skip "programs" "no afrdma.ko"; exit 4; }
for file in "$AFR_SRC/build/tools/smctl" "$built/bulk"; do
	[ -x "$file" ] || { skip "programs" "no $file: make tools programs"; exit 4; }
done

### The guest

# The same bytes in both guests, so that each can verify what it receives.
make_data() {
	local size
	mkdir -p $data
	for size in 4k 64k 900k 16M; do
		head -c "$size" /dev/zero | openssl enc -aes-128-ctr -nosalt \
			-K 00112233445566778899aabbccddeeff -iv 0 2>/dev/null >"$data/$size"
	done
	chmod -R a+rX $data
}

# The packet filter counts incoming RoCE packets, whether AF_SMC or AF_RDMA uses them.
set_up_guest() {
	local a=$AFR_ME b=$AFR_PEER
	[ "$AFR_ROLE" = a ] || { a=$AFR_PEER; b=$AFR_ME; }
	printf '%s\n' "127.0.0.1 localhost" "$a afr-a" "$b afr-b" >/tmp/hosts
	mount --bind /tmp/hosts /etc/hosts || exit 1
	sysctl -qw net.afrdma.upgrade_bytes=0
	nft 'add table inet programs
		add counter inet programs roce
		add chain inet programs in { type filter hook input priority 0; }
		add rule inet programs in udp dport 4791 counter name roce' || exit 1
	make_data
	# Make copies that every user can read, since PostgreSQL does not run as root.
	mkdir /tmp/bin && cp "$AFR_SRC"/build/tools/{smctl,libafrdma-preload.so} \
		"$built/smc.so" /tmp/bin
}

roce_bytes() { nft list counter inet programs roce | awk '/packets/ { print $4 }'; }
counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }
listens() { ss -Htln "sport = :$1" | grep -q .; }
# rdma_bytes FAMILY: print how many bytes this guest has received by RDMA; on smc, packet headers
# are included
rdma_bytes() {
	case $1 in
	tcp)	echo 0 ;;
	smc)	roce_bytes ;;
	rdma)	counter rx_bytes_rdma ;;
	esac
}

has_smc() {
	python3 -c 'import socket; socket.socket(43, socket.SOCK_STREAM, 0)' 2>/dev/null
}

### A row

# field ROW N: a field of the table in rows.sh
field() { rows | awk -v name="$1" -v n="$2" '$1 == name { print $n }'; }

# missing ROW: print the first command or path that the row requires and this guest lacks
missing() {
	local command
	for command in $(field "$1" 5 | tr , ' '); do
		command -v "$command" >/dev/null || [ -e "$command" ] ||
			{ echo "$command"; return; }
	done
	# mpi_ring is built only if mpicc is installed, gloo_reduce only if Gloo is.
	case $1 in
	mpi*)	[ -x "$built/mpi_ring" ] || echo mpi_ring ;;
	gloo)	[ -x "$built/gloo_reduce" ] || echo gloo_reduce ;;
	esac
}

# end_group PID: end a process group, with SIGKILL after ten seconds
end_group() {
	local pid=$1 t
	kill -TERM -- "-$pid" 2>/dev/null
	for ((t = 0; t < 100; t++)); do
		kill -0 -- "-$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# limited SECONDS PID: wait for the process; return its status, or 124 if it was ended after SECONDS
limited() {
	local end=$((SECONDS + $1)) pid=$2
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS > end)); then
			end_group "$pid"
			return 124
		fi
		sleep 0.1
	done
	wait "$pid"
}

listens_or_gone() { listens "$port" || ! kill -0 "$server" 2>/dev/null; }

# serve ROW SECONDS: in guest a, run the server until the client has ended; SECONDS is the time
# limit of the client
serve() {
	local row=$1 seconds=$2
	("${row}_server") >"$log" 2>&1 &
	server=$!
	wait_for 60 listens_or_gone
	listens "$port" || say "$row: the server does not listen: $(tail -n 1 "$log")"
	barrier "$key.up" 120
	barrier "$key.end" $((seconds + 60))
	end_group "$server"
}

# ask ROW SECONDS: in guest b, run the client for at most SECONDS; set $verdict and $took (in
# milliseconds)
ask() {
	local row=$1 seconds=$2 rc=0 from
	barrier "$key.up" 120
	from=$(date +%s%N)
	("${row}_client") >"$log" 2>&1 &
	client=$!
	limited "$seconds" $client || rc=$?
	took=$((($(date +%s%N) - from) / 1000000))
	verdict=pass
	[ $rc -eq 0 ] || verdict="fail($rc)"
	end_group $client	# ends processes that the client left running
	barrier "$key.end"
}

# under FAMILY: set the array "under" to the words that run a program on FAMILY
under() {
	case $1 in
	tcp)	under=(env) ;;
	smc)	under=(env "LD_PRELOAD=/tmp/bin/smc.so") ;;
	rdma)	under=("$smctl" run --) ;;
	esac
}

# Each combination of a row and a family has its own range of ten ports.
port=7300
# one ROW FAMILY: run this guest's part of a row on FAMILY
one() {
	local row=$1 family=$2 before wire bytes seconds
	key=$row.$family
	log=$AFR_OUT/$key.log
	port=$((port + 10))
	seconds=$(field "$row" 2)
	under "$family"
	mkdir -p "/tmp/work/$key" && cd "/tmp/work/$key" || return
	before=$(rdma_bytes "$family")
	wire=$(roce_bytes)
	if [ "$AFR_ROLE" = a ]; then serve "$row" "$seconds"; else ask "$row" "$seconds"; fi
	bytes=$(($(rdma_bytes "$family") - before))
	wire=$(($(roce_bytes) - wire))
	# Take the smaller count: the packet filter must confirm what the module counts.
	put "$key" $((bytes < wire ? bytes : wire))
	cd / && rm -rf "/tmp/work/$key"
	[ "$AFR_ROLE" = a ] || judge "$row" "$family"
}

# listed ROW FAMILY: if programs.differences lists a failure of ROW on FAMILY, print its reason
listed() {
	awk -v row="$1" -v family="$2" '$1 == row && $2 == family {
		sub(/^[^\t ]+[\t ]+[^\t ]+[\t ]+/, ""); print }' "$here/programs.differences"
}

# judge ROW FAMILY: in guest b, print the result and add it to the table
judge() {
	local row=$1 family=$2 into_a into_b why
	into_a=$(get "$key") || into_a=0
	into_b=$(cat "$AFR_SHARED/key.$key.b")
	why=$(listed "$row" "$family")
	if [ "$family" = rdma ] && [ "$verdict" = pass ] && ((
		into_a < $(field "$row" 3) << 10 || into_b < $(field "$row" 4) << 10)); then
		verdict="too-little-by-RDMA"
		echo "received by RDMA: a $((into_a >> 10)) KiB, b $((into_b >> 10)) KiB" >>"$log"
	fi
	printf '%-10s %-5s %-10s %9d %9d %7d.%d\n' "$row" "$family" "$verdict" \
		$((into_a >> 10)) $((into_b >> 10)) $((took / 1000)) $((took / 100 % 10)) |
		tee -a "$AFR_OUT/table"
	sed -n "s/^TABLE /$row $family /p" "$log" >>"$AFR_OUT/values"
	if [ "$verdict" = pass ]; then
		ok "$row on $family"
	elif [ "$family" = smc ]; then
		skip "$row on smc" "$verdict: $(tail -n 1 "$log")"
	elif [ -n "$why" ]; then
		skip "$row on $family" "listed: $why"
	else
		not_ok "$row on $family" "$verdict: $(tail -n 1 "$log")"
	fi
}

# Print the measured values: a line for each quantity of a row, a column for each family.
tables() {
	awk '{
		what = $1 ":"
		for (i = 4; i <= NF; i++)
			what = what " " $i
		if (!(what in seen))
			line[++n] = what
		seen[what]
		value[what, $2] = $3
	}
	END {
		printf "%-50s %10s %10s %10s\n", "", "TCP", "AF_SMC", "AF_RDMA"
		for (i = 1; i <= n; i++)
			printf "%-50s %10s %10s %10s\n", line[i], value[line[i], "tcp"],
			       value[line[i], "smc"], value[line[i], "rdma"]
	}' "$AFR_OUT/values"
}

set_up_guest
case $families in *smc*)
	python3 "$here/smc_eid.py" >"$AFR_OUT/smc_eid.log" 2>&1
	has_smc || { skip "AF_SMC" "not in this kernel"; families=${families/smc/}; } ;;
esac
[ $# -gt 0 ] || mapfile -t all < <(rows | awk '{ print $1 }')
[ $# -gt 0 ] && all=("$@")
barrier begin
printf '%-10s %-5s %-10s %9s %9s %9s\n' program on verdict KiB-to-a KiB-to-b seconds \
	>"$AFR_OUT/table"
for row in "${all[@]}"; do
	lacks=$(missing "$row")
	[ -z "$lacks" ] || { skip "$row" "$lacks is not installed"; continue; }
	for family in $families; do one "$row" "$family"; done
done
[ ! -s "$AFR_OUT/values" ] || tables >"$AFR_OUT/tables"
# Remove the RDMA device and add it again: otherwise SMC would keep its queue pairs for another ten
# minutes, and the ledger (lab/ledger.sh) would report them.
case $families in *smc*)
	rdma link del "$AFR_DEV" && rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0 ;;
esac
barrier end 240
