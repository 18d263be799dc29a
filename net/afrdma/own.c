// SPDX-License-Identifier: GPL-2.0
/* Options of SOL_AFRDMA: what TCP has no word for. */
#include <linux/capability.h>
#include <net/busy_poll.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>

#include "dev.h"
#include "mem.h"
#include "move.h"
#include "ring.h"
#include "sock.h"

/* The ring of who does not ask: as is set, but no more than memory and devices are good for. */
static u32 unasked(struct afr_net *an, u32 wanted)
{
	return afr_mem_ring(an, min(wanted, afr_device_ring_max()));
}

/**
 * afr_own_sndbuf() - the send ring to make
 * @sk: front; SO_SNDBUF stores twice what was asked for
 *
 * Return: bytes.
 */
u32 afr_own_sndbuf(const struct sock *sk)
{
	struct afr_net *an = afr_sk(sk)->conn->an;

	if (afr_sk(sk)->sndring)
		return afr_sk(sk)->sndring;
	return sk->sk_userlocks & SOCK_SNDBUF_LOCK ? sk->sk_sndbuf / 2 :
						     unasked(an, READ_ONCE(an->set.sndbuf));
}

/**
 * afr_own_rcvbuf() - the receive ring to make
 * @sk: front
 *
 * Return: bytes.
 */
u32 afr_own_rcvbuf(const struct sock *sk)
{
	struct afr_net *an = afr_sk(sk)->conn->an;

	if (afr_sk(sk)->rcvring)
		return afr_sk(sk)->rcvring;
	return sk->sk_userlocks & SOCK_RCVBUF_LOCK ? sk->sk_rcvbuf / 2 :
						     unasked(an, READ_ONCE(an->set.rcvbuf));
}

/**
 * afr_own_busy_poll() - how long a receiver is to look before it sleeps
 * @sk: front; SO_BUSY_POLL is for those who may do so, AFRDMA_BUSY_POLL goes before it
 *
 * Return: microseconds, 0 = not at all.
 */
unsigned int afr_own_busy_poll(const struct sock *sk)
{
	unsigned int us = READ_ONCE(afr_sk(sk)->busy_poll);

#ifdef CONFIG_NET_RX_BUSY_POLL
	if (!us)
		us = READ_ONCE(sk->sk_ll_usec);
#endif
	return us;
}

static int set_rdma(struct sock *sk, int value)
{
	if (value < AFRDMA_RDMA_AUTO || value > AFRDMA_RDMA_ALWAYS)
		return -EINVAL;
	afr_move_set_wish(afr_sk(sk)->conn, value);
	return 0;
}

static int get_rdma(const struct sock *sk)
{
	return READ_ONCE(afr_sk(sk)->conn->wish);
}

/* Unlike SO_SNDBUF this is what will be, or an error. */
static int set_ring(struct sock *sk, int value, u32 *ring)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	if (afr_conn_tx_mode(conn) != AFR_NONE)
		return -EISCONN;
	if (value < (int)AFR_MEM_LEAST || value > READ_ONCE(conn->an->set.ring_max) ||
	    !is_power_of_2(value))
		return -EINVAL;
	*ring = value;
	return 0;
}

static int set_sndring(struct sock *sk, int value)
{
	return set_ring(sk, value, &afr_sk(sk)->sndring);
}

static int set_rcvring(struct sock *sk, int value)
{
	return set_ring(sk, value, &afr_sk(sk)->rcvring);
}

static int get_sndring(const struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	return test_bit(AFR_F_STARTED, &conn->flags) ? conn->tx.ring :
	       afr_ring_size(afr_own_sndbuf(sk), AFR_MEM_LEAST,
			     READ_ONCE(conn->an->set.ring_max));
}

static int get_rcvring(const struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	return test_bit(AFR_F_STARTED, &conn->flags) ? conn->rx.ring :
	       afr_ring_size(afr_own_rcvbuf(sk), AFR_MEM_LEAST,
			     READ_ONCE(conn->an->set.ring_max));
}

/* Who may keep a CPU busy by SO_BUSY_POLL may by this; up to a millisecond everybody may. */
static int set_busy_poll(struct sock *sk, int value)
{
	if (value < 0)
		return -EINVAL;
	if (value > USEC_PER_MSEC && !capable(CAP_NET_ADMIN))
		return -EPERM;
	WRITE_ONCE(afr_sk(sk)->busy_poll, value);
	return 0;
}

static int get_busy_poll(const struct sock *sk)
{
	return afr_own_busy_poll(sk);
}

static const struct own_option {
	int (*set)(struct sock *sk, int value);
	int (*get)(const struct sock *sk);
} options[] = {
	[AFRDMA_RDMA]		= { set_rdma, get_rdma },
	[AFRDMA_SNDRING]	= { set_sndring, get_sndring },
	[AFRDMA_RCVRING]	= { set_rcvring, get_rcvring },
	[AFRDMA_BUSY_POLL]	= { set_busy_poll, get_busy_poll },
};

static const struct own_option *find(int name)
{
	if (name < 0 || name >= ARRAY_SIZE(options) || !options[name].set)
		return NULL;
	return &options[name];
}

/**
 * afr_own_set() - setsockopt(SOL_AFRDMA)
 * @sk: front
 * @name: AFRDMA_*
 * @from: an int
 * @len: its length, at least that of an int
 *
 * Return: 0 or -errno.
 */
int afr_own_set(struct sock *sk, int name, sockptr_t from, unsigned int len)
{
	const struct own_option *option = find(name);
	int value;

	if (!option)
		return -ENOPROTOOPT;
	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, from, sizeof(value)))
		return -EFAULT;
	return option->set(sk, value);
}

static void fill_info(struct afr_conn *conn, struct afrdma_info *out)
{
	struct afr_conn_info info;

	afr_conn_info(conn, &info);
	*out = (struct afrdma_info) {
		.mode		= info.mode,
		.tx_path	= info.tx_path,
		.rx_path	= info.rx_path,
		.reason		= info.reason,
		.tx_bytes_tcp	= info.tx_bytes[AFR_ON_TCP],
		.tx_bytes_rdma	= info.tx_bytes[AFR_ON_LINK],
		.rx_bytes_tcp	= info.rx_bytes[AFR_ON_TCP],
		.rx_bytes_rdma	= info.rx_bytes[AFR_ON_LINK],
		.moves		= info.moves,
		.link		= info.link,
		.tx_ring	= info.tx_ring,
		.rx_ring	= info.rx_ring,
		.reason_peer	= info.reason_peer,
		.server		= info.server,
	};
}

/**
 * afr_own_get() - getsockopt(SOL_AFRDMA)
 * @sk: front
 * @name: AFRDMA_*
 * @to: where to
 * @len: room there, and bytes written
 *
 * Return: 0 or -errno.
 */
int afr_own_get(struct sock *sk, int name, char __user *to, int __user *len)
{
	const struct own_option *option = find(name);
	union {
		struct afrdma_info info;
		int value;
	} out;
	int room, size;

	if (name == AFRDMA_INFO) {
		fill_info(afr_sk(sk)->conn, &out.info);
		size = sizeof(out.info);
	} else if (option) {
		out.value = option->get(sk);
		size = sizeof(out.value);
	} else {
		return -ENOPROTOOPT;
	}
	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min(room, size);
	if (put_user(room, len) || copy_to_user(to, &out, room))
		return -EFAULT;
	return 0;
}
