/* SPDX-License-Identifier: MIT */
/*
 * sul_cable.h - network cores joined by a network that is made of a seed.
 *
 * Packets of every rank go through one simulated network: they take their time,
 * get lost, doubled, late or damaged.  Time is simulated too: it jumps to the
 * next thing that happens.
 */
#ifndef SUL_CABLE_H
#define SUL_CABLE_H

#include "sul_net.h"
#include "unit_seed.h"

enum {
	CABLE_RANKS_MAX = 4,
	CABLE_WINDOWS = 3,
	CABLE_WINDOW_BYTES = 1 << 18,
	CABLE_PAGE_BYTES = 4096,
	CABLE_PAGES = CABLE_WINDOW_BYTES / CABLE_PAGE_BYTES,
};

struct cable_config {
	int ranks;
	unsigned int span;
	unsigned int packet_bytes[CABLE_RANKS_MAX];
	uint32_t session[CABLE_RANKS_MAX]; /* 0: drawn */
	enum sul_net_auth auth;
	uint32_t loss_ppm, twice_ppm, damage_ppm, late_ppm;
	uint64_t latency_ns, late_ns; /* one way; @late_ns: up to, more */
	uint64_t byte_ps; /* of one direction of a rank's line */
	uint64_t queue_ns; /* what would wait longer for it is lost; 0: no limit */
	uint64_t turn_ns; /* a rank looks at its packets so often */
	uint64_t silence_ns;
	unsigned int paths;
	unsigned char key_byte; /* of the job's secret */
	bool copy; /* struct sul_net_config */
	/* Windows are reached page by page, and whenever something is done to a
	 * rank, a page of it is gone with this chance; it comes back when it has
	 * been asked for, up to @page_ns later. */
	bool paged;
	uint32_t gone_ppm;
	unsigned int pages_most; /* that are there at a time; 0: any number */
	uint64_t page_ns;
};

/* Loss-free, MAC, 1472 bytes, 50 us. */
struct cable_config cable_plain(int ranks);

struct cable_packet {
	uint64_t at_ns, order;
	int from, to;
	unsigned int path;
	size_t len;
	unsigned char bytes[SUL_NET_PACKET_MAX];
};

/* The windows of a rank, page by page. */
struct cable_pages {
	/* Another view of window @w: between two pages lies one that nobody may
	 * touch. */
	unsigned char *view[CABLE_WINDOWS];
	bool there[CABLE_WINDOWS * CABLE_PAGES];
	unsigned int nr;
	/* What a request of [rank] waits for, and when it will be there. */
	uint64_t resume_ns[CABLE_RANKS_MAX];
	unsigned int first[CABLE_RANKS_MAX], last[CABLE_RANKS_MAX];
};

struct cable {
	struct cable_config cfg;
	struct unit_rng rng;
	uint64_t now_ns, order;
	struct sul_net *net[CABLE_RANKS_MAX];
	unsigned char *window[CABLE_RANKS_MAX][CABLE_WINDOWS];
	uint64_t line_ns[CABLE_RANKS_MAX]; /* free again then */
	uint64_t turn_ns[CABLE_RANKS_MAX]; /* looks at its packets then */
	bool stopped[CABLE_RANKS_MAX]; /* neither sends nor receives */
	bool cut[CABLE_RANKS_MAX]; /* nothing comes in or goes out */
	struct cable_pages pages[CABLE_RANKS_MAX];
	bool cut_path[SUL_NET_PATHS_MAX]; /* nothing gets through by it */
	struct cable_packet **heap; /* under way, the next one first */
	size_t nr, room;
	uint64_t sent, lost, notified;
	/* How often one [rank] has declared another one dead. */
	int dead[CABLE_RANKS_MAX][CABLE_RANKS_MAX];
	/* The same of one that has left and was needed. */
	int left[CABLE_RANKS_MAX][CABLE_RANKS_MAX];
	struct cable_rank {
		struct cable *c;
		int rank;
	} ctx[CABLE_RANKS_MAX];
	size_t allocated;
	size_t allocate_most; /* more than that fails; 0: no limit */
	/* Sees every packet that is sent; false: it gets lost. */
	bool (*tap)(struct cable *c, struct cable_packet *p);
	void *tap_ctx;
};

void cable_open(struct cable *c, const struct cable_config *cfg,
		struct unit_rng rng);
void cable_open_rank(struct cable *c, int rank);
void cable_introduce(struct cable *c, int rank, int to);
void cable_close(struct cable *c);

/* Everybody's packets leave, then the next thing happens.  False: nothing ever
 * will. */
bool cable_step(struct cable *c);
/* Until @rank is quiet; false: it did not become so within a simulated hour. */
bool cable_flush(struct cable *c, int rank);
/* Let that time pass. */
void cable_run(struct cable *c, uint64_t ns);
/* What has come by now, to everybody. */
void cable_deliver(struct cable *c);
/* As if it came from @from now. */
void cable_send(struct cable *c, int from, int to, const void *bytes,
		size_t len);

#endif /* SUL_CABLE_H */
