# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2317,SC2154,SC2086,SC2030,SC2031,SC2094
# Reasons for the disabled checks: run.sh calls these functions and sets their variables, and no
# folder has blanks in its name.
#
# The programs of run.sh: a table, and two functions for each line of it. NAME_server runs in guest
# a and must listen on $port. NAME_client runs in b; it must verify what it transfers, and fail if
# a byte is wrong. Load generators such as wrk do not verify bytes; the rows iperf3, ucx and
# redis_many run only load generators. Both functions run in an empty folder, whose path is the
# same in both guests. They put "${under[@]}" in front of commands that use the address family
# under test, and may use the ports up to $port + 9. run.sh ends processes that they leave running.

# Name, time limit of the client in seconds, KiB that a and b must receive by RDMA, required
# commands or paths
rows() {
	cat <<-'END'
	redis		90	30000	45000	redis-server,redis-cli,redis-benchmark
	memcached	90	14000	16000	memcached,memccp,memccat,memcslap,memcaslap
	postgres	180	20000	20000	pgbench
	nginx		90	0	45000	nginx,wrk,curl,openssl
	haproxy		60	15000	15000	haproxy,nginx,curl
	http2		60	60	25000	nghttpd,nghttpx,nghttp,h2load
	grpc		90	15000	15000	/usr/lib/python3/dist-packages/grpc
	ssh		90	15000	15000	sshd,scp
	rsync		60	15000	15000	rsync
	git		60	0	15000	git
	socat		60	15000	15000	socat
	iperf3		60	30000	30000	iperf3
	mpi		120	8000	8000	mpirun,sshd
	mpi_ucx		120	8000	8000	mpirun,sshd
	mpi_ofi		120	8000	8000	mpirun,sshd
	ucx		90	12000	12000	ucx_perftest
	libfabric	60	15000	15000	fi_pingpong
	gloo		180	80000	80000	redis-server
	rpc		120	0	60000	/bin/sh
	fetch		120	0	60000	/bin/sh
	redis_many	200	8000	8000	redis-server,redis-benchmark
	END
}

# same FILE...: are the files equal to those in $data?
same() {
	local file
	for file; do cmp "$file" "$data/$(basename "$file")" || return; done
}

# table VALUE WORDS...: print VALUE for run.sh, which puts it into the table of measured values, in
# the line "ROW: WORDS"
table() { echo "TABLE $*"; }

### Key-value stores and a database

redis_at() {
	local at=$1
	shift
	"${under[@]}" redis-server --port "$at" --bind "$AFR_ME" --protected-mode no --save '' \
		--enable-debug-command yes --repl-diskless-sync-delay 0 "$@"
}
redis_server() { redis_at "$port"; }
# The last step starts a replica of the other guest's server in this guest. Replica and server must
# have the same digest of all keys and values.
redis_client() {
	local cli=("${under[@]}" redis-cli -h "$AFR_PEER" -p "$port" --raw)
	local mine=(redis-cli -h "$AFR_ME" -p $((port + 1)) --raw)
	"${under[@]}" redis-benchmark -h "$AFR_PEER" -p "$port" -c 8 -n 4000 -r 1000 \
		-d 4096 -t set,get -q || return
	"${cli[@]}" -x set file <$data/16M || return
	"${cli[@]}" get file | head -c -1 >16M
	same 16M || return
	redis_at $((port + 1)) --replicaof "$AFR_PEER" "$port" &
	wait_for 30 sh -c "${mine[*]} info replication | grep -q master_link_status:up" || return
	"${cli[@]}" set last word
	wait_for 10 sh -c "${mine[*]} get last | grep -q word" || return
	[ "$("${cli[@]}" debug digest)" = "$("${mine[@]}" debug digest)" ]
}

# redis-benchmark does not verify the bytes; the row redis does.
redis_many_server() { redis_at "$port"; }
redis_many_client() {
	local connections test rest
	for connections in 1 4 8 16 32; do
		"${under[@]}" redis-benchmark -h "$AFR_PEER" -p "$port" -c $connections \
			-n 3000 -d 1024 -t set,get --csv >csv || return
		while IFS=, read -r test _ rest; do
			case $test in '"SET"' | '"GET"')
				table "$(grep "^$test" csv | cut -d '"' -f 4)" \
					"${test//\"/} a second, $connections connections" ;;
			esac
		done <csv
	done
}

memcached_server() { "${under[@]}" memcached -u nobody -l "$AFR_ME" -p "$port" -m 128 -U 0; }
memcached_client() {
	local servers=--servers=$AFR_PEER:$port n
	for n in 0 1 2 3 4 5 6 7 8 9; do cp $data/900k "$n.900k"; done
	"${under[@]}" memccp "$servers" ./*.900k || return
	for n in 0 1 2 3 4 5 6 7 8 9; do
		"${under[@]}" memccat "$servers" --file=got "$n.900k" || return
		cmp got $data/900k || return
	done
	"${under[@]}" memcslap "$servers" --concurrency=4 --execute-number=200 --test=set || return
	printf '%s\n' key "16 100 0.5" "101 250 0.5" value "1 1000 0.2" "6000 14000 0.8" \
		cmd "0 0.3" "1 0.7" >load.conf
	"${under[@]}" memcaslap "$servers" --cfg_cmd=load.conf --threads=2 --concurrency=4 \
		--win_size=1k --division=8 --verify=1.0 --execute_number=3000 2>&1 |
		tee load || return
	# memcaslap exits with 0 even after errors, so check its output. If it loses a connection,
	# it hangs until the time limit of the row.
	awk '/^cmd_/ { done += $2 } /^(get_misses|verify_misses|verify_failed):/ { n++; bad += $2 }
		/ERROR/ { bad++ } END { exit done != 3000 || n != 3 || bad }' load
}

# pg PROGRAM WORD...: run a program of PostgreSQL as another user than root
pg() {
	local program=$1
	shift
	setpriv --reuid=65534 --regid=65534 --clear-groups "${under[@]}" \
		"$(find /usr/lib/postgresql -path "*/bin/$program" | sort -V | tail -n 1)" "$@"
}
# Creating the database takes most of the time, so it is done only for the first family.
postgres_server() {
	local under=("${under[@]}")
	if [ ! -e /tmp/pg/made ]; then
		mkdir /tmp/pg && chown 65534:65534 /tmp/pg
		(under=(env) && pg initdb -D /tmp/pg/data -A trust -U test -N) || return
		echo "host all all $AFR_PEER/32 trust" >>/tmp/pg/data/pg_hba.conf
		touch /tmp/pg/made
	fi
	pg postgres -D /tmp/pg/data -p "$port" -k /tmp/pg -h "$AFR_ME" -c fsync=off
}
# After 4 * 50 transactions of pgbench, the history must have 200 rows, and the sum of their deltas
# must equal the sum of the tellers' balances.
postgres_client() {
	local to=(-h "$AFR_PEER" -p "$port" -U test)
	local sql=(psql "${to[@]}" -X -q -A -t -v ON_ERROR_STOP=1 postgres)
	chmod 777 .
	base64 $data/16M >lines
	pg pgbench "${to[@]}" -i -s 1 -q postgres || return
	pg pgbench "${to[@]}" -c 4 -t 50 postgres | tee bench || return
	table "$(awk '/^tps/ { print $3 }' bench)" "transactions a second, 4 clients"
	[ "$(pg "${sql[@]}" -c 'select (select sum(tbalance) from pgbench_tellers) =
		(select sum(delta) from pgbench_history) and (select count(*) = 200
		from pgbench_history)')" = t ] || return
	pg "${sql[@]}" -c 'drop table if exists t' -c 'create table t (line text)' \
		-c "\\copy t from lines" -c "\\copy t to got" && cmp lines got
}

### The web

# nginx_at PORT: serve HTTP on PORT and HTTPS on the next port
nginx_at() {
	[ -e key ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
		-subj /CN=afr -keyout key -out cert || return
	cat >nginx.conf <<-END
	daemon off; user root; worker_processes 1; pid $PWD/nginx.pid;
	events { worker_connections 256; }
	http {
		access_log off; sendfile on; keepalive_requests 100000;
		client_body_temp_path $PWD/b; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f;
		uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
		server {
			listen $AFR_ME:$1; listen $AFR_ME:$(($1 + 1)) ssl;
			ssl_certificate $PWD/cert; ssl_certificate_key $PWD/key;
			ssl_conf_command Options KTLS;
			root $data;
		}
	}
	END
	"${under[@]}" nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf"
}
# get_files URL CURL-OPTION...: get three files and compare them with those in $data; curl uses one
# connection, unless an option closes it after each file
get_files() {
	local url=$1 files=() file
	shift
	rm -f 16M 900k 64k
	for file in 16M 900k 64k; do files+=("$url/$file" -o "$file"); done
	"${under[@]}" curl -sSf "$@" "${files[@]}" && same 16M 900k 64k
}

# get_with_ktls ADDRESS:PORT FILE: get FILE by HTTPS, with kernel TLS requested at both ends. TCP
# supports it. AF_RDMA refuses it, and then both ends encrypt in user space.
get_with_ktls() {
	printf '%s\n' 'openssl_conf = all' '[all]' 'ssl_conf = ssl' '[ssl]' \
		'system_default = ours' '[ours]' 'Options = KTLS' >openssl.cnf
	printf 'GET /%s HTTP/1.0\r\n\r\n' "$2" | OPENSSL_CONF=$PWD/openssl.cnf \
		"${under[@]}" openssl s_client -quiet -connect "$1" >answer 2>messages
	sed '1,/^\r$/d' answer >"$2"
	cat messages
	same "$2" || return
	[ "${under[1]:-}" != run ] || ! grep 'Kernel TLS' messages
}

nginx_server() { nginx_at "$port"; }
nginx_client() {
	local url=http://$AFR_PEER:$port
	get_files "$url" && get_files "$url" -H 'Connection: close' &&
		get_files "https://$AFR_PEER:$((port + 1))" -k &&
		get_with_ktls "$AFR_PEER:$((port + 1))" 900k || return
	"${under[@]}" wrk -t1 -c8 -d3s "$url/4k" | tee wrk || return
	! grep -E 'Socket errors|Non-2xx' wrk || return
	table "$(awk '/^Requests/ { print $2 }' wrk)" "requests of 4 KiB a second, 8 connections"
}

# nginx runs in the guest of the client, so that both connections of haproxy cross to the other
# guest. For each transfer, haproxy decides whether to use splice.
haproxy_server() {
	cat >conf <<-END
	defaults
		mode tcp
		option splice-auto
		timeout connect 10s
		timeout client 60s
		timeout server 60s
	listen all
		bind $AFR_ME:$port
		server b $AFR_PEER:$((port + 1))
	END
	"${under[@]}" haproxy -db -f conf
}
haproxy_client() {
	nginx_at $((port + 1)) &
	wait_for 20 listens $((port + 1)) && get_files "http://$AFR_PEER:$port" &&
		get_files "http://$AFR_PEER:$port" -H 'Connection: close'
}

# The connections from the proxy to nghttpd stay within this guest: rxe hands their packets to
# itself, past the packet filter of run.sh. The module counts their bytes, the filter does not, and
# run.sh takes the smaller count.
http2_server() {
	"${under[@]}" nghttpd --no-tls -a "$AFR_ME" -d $data $((port + 1)) &
	wait_for 20 listens $((port + 1))
	"${under[@]}" nghttpx --conf=/dev/null --workers=1 -f "$AFR_ME,$port;no-tls" \
		-b "$AFR_ME,$((port + 1));;proto=h2" --errorlog-file=/dev/stderr
}
http2_client() {
	local url=http://$AFR_PEER:$port
	"${under[@]}" nghttp "$url/16M" >16M && same 16M || return
	"${under[@]}" h2load -n 200 -c 4 -m 8 "$url/64k" | tee load
	grep -q '200 succeeded, 0 failed' load || return
	table "$(awk '/^finished/ { print $4 }' load)" "requests of 64 KiB a second, 4 connections"
}

grpc_server() { "${under[@]}" /usr/bin/python3 "$here/grpc_stream.py" serve "$AFR_ME:$port"; }
grpc_client() {
	"${under[@]}" /usr/bin/python3 "$here/grpc_stream.py" echo "$AFR_PEER:$port" $data/16M
}

### Copies

# sshd_at [WORD...]: run sshd, with WORDs in front of the command; give the user's key to the other
# guest
sshd_at() {
	mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f user || return
	cp user "$AFR_SHARED/$key.user"
	"$@" /usr/sbin/sshd -D -e -f /dev/null -h "$PWD/host" -o "ListenAddress=$AFR_ME:$port" \
		-o "AuthorizedKeysFile=$PWD/user.pub" -o StrictModes=no -o UsePAM=no \
		-o PermitRootLogin=yes -o Subsystem="sftp internal-sftp"
}
# Copy the key that sshd_at of the other guest gives, and set the array "words" to options for ssh
# and scp.
ssh_words() {
	install -m 600 "$AFR_SHARED/$key.user" user
	words=(-F /dev/null -i "$PWD/user" -o StrictHostKeyChecking=no -o LogLevel=ERROR
		-o UserKnownHostsFile=/dev/null)
}
ssh_server() { sshd_at "${under[@]}"; }
ssh_client() {
	local words
	ssh_words
	"${under[@]}" scp "${words[@]}" -P "$port" $data/16M "root@$AFR_PEER:$PWD/up" &&
		"${under[@]}" scp "${words[@]}" -P "$port" "root@$AFR_PEER:$PWD/up" 16M && same 16M
}

rsync_server() {
	printf '%s\n' "[w]" "path = $PWD" "use chroot = no" "read only = no" "uid = root" \
		"gid = root" >conf
	"${under[@]}" rsync --daemon --no-detach --config=conf --address="$AFR_ME" --port="$port"
}
rsync_client() {
	local url=rsync://$AFR_PEER:$port/w
	"${under[@]}" rsync -a $data/ "$url/up/" && "${under[@]}" rsync -a "$url/up/" down/ &&
		diff -r $data down
}

git_server() {
	git init -q repo && cp $data/* repo/ || return
	git -C repo -c core.compression=0 add . && git -C repo -c user.name=a -c user.email=a@a \
		commit -q -m files || return
	"${under[@]}" git daemon --export-all --reuseaddr --base-path="$PWD" \
		--listen="$AFR_ME" --port="$port"
}
git_client() {
	"${under[@]}" git clone -q "git://$AFR_PEER:$port/repo" repo &&
		git -C repo fsck --full && rm -rf repo/.git && diff -r $data repo
}

# The row transfers one way at a time. The echo of socat (PIPE) is not used, since it may hang: one
# process writes to a pipe, up to 8 KiB at a time, and reads the same pipe. After short reads from
# the socket, which are more frequent on AF_RDMA than on TCP, the pipe can poll as writable with
# less than 8 KiB free; the process then waits in write() for itself.
socat_server() {
	"${under[@]}" socat -u "FILE:$data/16M" "TCP-LISTEN:$((port + 1)),bind=$AFR_ME" &
	"${under[@]}" socat -u "TCP-LISTEN:$port,bind=$AFR_ME" CREATE:got
	put "$key.sum" "$(sha256sum <got)"
	wait
}
socat_client() {
	"${under[@]}" socat -u "FILE:$data/16M" "TCP:$AFR_PEER:$port" || return
	[ "$(get "$key.sum" 20)" = "$(sha256sum <$data/16M)" ] || return
	"${under[@]}" socat -u "TCP:$AFR_PEER:$((port + 1))" CREATE:16M && same 16M
}

# iperf3 does not verify bytes. Its server stops counting when the client tells it to, also on TCP,
# so a server that receives may count too few bytes: the client checks the sender's count. On
# AF_RDMA, run.sh checks how much was received.
iperf3_server() { "${under[@]}" iperf3 -s -B "$AFR_ME" -p "$port"; }
iperf3_client() {
	local way
	for way in "" -R; do
		# shellcheck disable=SC2086 # no argument if empty
		"${under[@]}" iperf3 -c "$AFR_PEER" -p "$port" $way -n 32M -J >json || return
		/usr/bin/python3 - "${way:--}" <<-'END' || return
		import json, sys
		end = json.load(open("json"))["end"]["sum_sent"]
		assert end["bytes"] >= 32 << 20
		way = "to the client" if sys.argv[1] == "-R" else "to the server"
		print("TABLE %.1f MB/s, %s" % (end["bits_per_second"] / 8e6, way))
		END
	done
}

### Our own program: bulk.c

bulk() {
	"${under[@]}" "$built/bulk" "$1" "$AFR_PEER" "$port" 8 >sizes || return
	awk '{ print "TABLE", $3, "MB/s,", $1, "bytes" }' sizes
}
rpc_server() { "${under[@]}" "$built/bulk" serve "$AFR_ME" "$port"; }
rpc_client() { bulk rpc; }
fetch_server() { rpc_server; }
fetch_client() { bulk fetch; }

### Message passing

# mpirun in guest b starts the process in guest a by ssh, which is not part of the test.
mpi_server() { sshd_at; }
mpi_run() {
	local words
	ssh_words
	words+=(-p "$port")
	mpirun --allow-run-as-root --host afr-b,afr-a -np 2 --mca plm_rsh_args "${words[*]}" \
		--mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 "$@" \
		"${under[@]}" "$built/mpi_ring" | tee ring
	grep -q '^all bytes right' ring || return
	sed -n 's/^ *\([0-9]*\) bytes: ring *\([0-9]*\).*/TABLE \2 us, ring of \1 bytes/p' ring
}
mpi_client() { mpi_run --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0; }
mpi_ucx_server() { mpi_server; }
mpi_ucx_client() {
	mpi_run --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \
		-x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0
}
mpi_ofi_server() { mpi_server; }
mpi_ofi_client() {
	mpi_run --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm' \
		-x FI_TCP_IFACE=eth0
}

# ucx_perftest does not verify the bytes; the row mpi_ucx does.
ucx_server() {
	UCX_TLS=tcp UCX_NET_DEVICES=eth0 "${under[@]}" ucx_perftest -p "$port"
}
ucx_client() {
	UCX_TLS=tcp UCX_NET_DEVICES=eth0 "${under[@]}" ucx_perftest "$AFR_PEER" -p "$port" \
		-t tag_lat -s 65536 -n 250 -w 10
}

# Two ranks in each guest; neighbours in the ring are always in different guests.
gloo_ranks() {
	local redis=$1 rank ranks=()
	shift
	for rank; do
		"${under[@]}" "$built/gloo_reduce" "$rank" 4 "$AFR_ME" "$redis" "$port" &
		ranks+=($!)
	done
	for rank in "${ranks[@]}"; do wait "$rank" || return; done
}
gloo_server() {
	redis_at "$port" &
	wait_for 20 listens "$port" && gloo_ranks "$AFR_ME" 1 3
	wait
}
gloo_client() {
	gloo_ranks "$AFR_PEER" 0 2 | tee sums || return
	grep -q '^all sums right' sums || return
	sed -n 's/^ *\([0-9]*\) bytes: ring *\([0-9]*\).*/TABLE \2 us, sum of \1 bytes/p' sums
}

libfabric_server() {
	FI_TCP_IFACE=eth0 "${under[@]}" fi_pingpong -p tcp -e msg -c -I 32 -S 1048576 -B "$port"
}
libfabric_client() {
	FI_TCP_IFACE=eth0 "${under[@]}" fi_pingpong -p tcp -e msg -c -I 32 -S 1048576 \
		-P "$port" "$AFR_PEER"
}
