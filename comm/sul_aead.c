/* SPDX-License-Identifier: MIT */
/*
 * sul_aead.c - ChaCha20-Poly1305 by libsodium, for auth=aead.
 *
 * Role:    what struct sul_net_env asks for; a build without libsodium has it
 *          not, and sul_auth_known() says so.
 * Threads: any.
 */
#include "sul_udp.h"

#ifdef SUL_SODIUM

#include <sodium.h>
#include <string.h>

enum {
	NONCE_BYTES = crypto_aead_chacha20poly1305_ietf_NPUBBYTES
};

_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES ==
		       SUL_NET_SEAL_KEY_BYTES,
	       "the core's keys are as long");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES ==
		       SUL_NET_SEAL_TAG_BYTES,
	       "and there is room for the tag");

bool sul_aead_known(void)
{
	return sodium_init() >= 0;
}

static void make_nonce(unsigned char out[NONCE_BYTES], uint64_t nonce)
{
	memset(out, 0, NONCE_BYTES);
	for (int i = 0; i < 8; i++)
		out[NONCE_BYTES - 8 + i] = (unsigned char)(nonce >> 8 * i);
}

void sul_aead_seal(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, const void *body,
		   size_t len, void *out)
{
	unsigned char bytes[NONCE_BYTES];

	(void)ctx;
	make_nonce(bytes, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, body, len, head,
						  head_len, NULL, bytes, key);
}

bool sul_aead_open(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, void *body, size_t len)
{
	unsigned char bytes[NONCE_BYTES];

	(void)ctx;
	make_nonce(bytes, nonce);
	return !crypto_aead_chacha20poly1305_ietf_decrypt(
		body, NULL, NULL, body, len + SUL_NET_SEAL_TAG_BYTES, head,
		head_len, bytes, key);
}

#else

bool sul_aead_known(void)
{
	return false;
}

#endif

bool sul_auth_known(enum sul_auth auth)
{
	return auth != SUL_AUTH_AEAD || sul_aead_known();
}
