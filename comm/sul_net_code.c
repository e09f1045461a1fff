/* SPDX-License-Identifier: MIT */
/*
 * sul_net_code.c - the authentication code of a packet.
 *
 * Role:      SipHash-2-4 over the header and the payload; of a longer payload
 *            over the digests of its blocks instead, which takes a third of the
 *            time.  A forgery succeeds with a probability of about 2^-64 either
 *            way.  Which of the two it is, and how the last block was filled up,
 *            follows from the length in the header.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

enum {
	BULK_BYTES = 128 /* a payload longer than this */
};

bool sul_net_code_is_bulk(size_t payload)
{
	return payload > BULK_BYTES;
}

void sul_net_code_keys(struct sul_nh_key *out,
		       const uint64_t key[SUL_NET_KEY_WORDS])
{
	struct sul_mac_key seed = { { key[2], key[3] } };

	sul_nh_key_make(out, &seed);
}

static uint64_t code_in_pieces(const uint64_t key[SUL_NET_KEY_WORDS],
			       const struct sul_nh_key *bulk, const void *head,
			       const void *first, size_t first_len,
			       const void *rest, size_t rest_len)
{
	struct sul_mac_key k = { { key[0], key[1] } };
	struct sul_mac m;
	struct sul_nh h;

	sul_mac_begin(&m, &k);
	sul_mac_add(&m, head, SUL_WIRE_HEAD_BYTES);
	if (!sul_net_code_is_bulk(first_len + rest_len)) {
		sul_mac_add(&m, first, first_len);
		sul_mac_add(&m, rest, rest_len);
	} else {
		sul_nh_begin(&h, bulk);
		sul_nh_add(&h, first, first_len, &m);
		sul_nh_add(&h, rest, rest_len, &m);
		sul_nh_end(&h, &m);
	}
	return sul_mac_end(&m);
}

/* What is short is in one piece, mostly. */
uint64_t sul_net_code(const uint64_t key[SUL_NET_KEY_WORDS],
		      const struct sul_nh_key *bulk, const void *head,
		      const void *first, size_t first_len, const void *rest,
		      size_t rest_len)
{
	if (sul_net_code_is_bulk(first_len) || rest_len)
		return code_in_pieces(key, bulk, head, first, first_len, rest,
				      rest_len);
	return sul_mac_two(key, head, SUL_WIRE_HEAD_BYTES / 8, first,
			   first_len);
}
