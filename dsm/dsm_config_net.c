/* SPDX-License-Identifier: MIT */
/* dsm_config_net.c - what the parameters say of the network. */
#include "dsm_config.h"
#include "sul.h"

static enum sul_far far_of(uint64_t carrier)
{
	switch (carrier) {
	case DSM_CARRIER_AUTO:
		return SUL_FAR_AUTO;
	case DSM_CARRIER_KMOD:
		return SUL_FAR_KMOD;
	default:
		return SUL_FAR_UDP;
	}
}

void dsm_config_listen(const struct dsm_config *c,
		       struct sul_listen_config *out)
{
	out->far = far_of(c->carrier);
	out->everywhere = c->carrier == DSM_CARRIER_UDP ||
			  c->carrier == DSM_CARRIER_KMOD;
	out->links = c->links_text;
	out->mtu = (unsigned int)c->mtu;
	out->span = (unsigned int)c->flight;
}
