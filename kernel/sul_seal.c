// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_seal.c - ChaCha20-Poly1305 by the kernel's library, for auth=aead.
 *
 * Role:    what struct sul_net_env asks for; the same bytes as libsodium's IETF form
 *          in comm/sul_aead.c: the nonce is 32 bits of 0 and 64 bits, little-endian.
 * Context: any; a kernel without that library has it not.
 */
#include "sul_core.h"

bool sul_seal_known(void)
{
	return SUL_HAS_AEAD;
}

#if SUL_HAS_AEAD

#include <crypto/chacha20poly1305.h>

static_assert((int)CHACHA20POLY1305_KEY_SIZE == (int)SUL_NET_SEAL_KEY_BYTES);
static_assert((int)CHACHA20POLY1305_AUTHTAG_SIZE ==
	      (int)SUL_NET_SEAL_TAG_BYTES);

void sul_seal(void *ctx, const unsigned char *key, uint64_t nonce,
	      const void *head, size_t head_len, const void *body, size_t len,
	      void *out)
{
	chacha20poly1305_encrypt(out, body, len, head, head_len, nonce, key);
}

bool sul_seal_open(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, void *body, size_t len)
{
	return chacha20poly1305_decrypt(body, body,
					len + SUL_NET_SEAL_TAG_BYTES, head,
					head_len, nonce, key);
}

#endif
