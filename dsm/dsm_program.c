/* SPDX-License-Identifier: MIT */
/*
 * dsm_program.c - where the program's global variables lie.
 *
 * Role:    reads the program's own headers, as the loader left them in memory.
 *          Writable is what a PT_LOAD segment says, without what the loader has
 *          made read-only since (PT_GNU_RELRO).  An object of a library to which
 *          the program refers by name may have been moved into the program (a
 *          copy relocation); it is the library's all the same.
 * Threads: any.
 */
#include "dsm_program.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>

#if defined(__x86_64__)
#define COPY_RELOCATION R_X86_64_COPY
#elif defined(__aarch64__)
#define COPY_RELOCATION R_AARCH64_COPY
#else
#error "which relocation copies an object of a library into the program?"
#endif

enum {
	PAGE_BYTES = 4096
};

struct reading {
	struct dsm_program *out;
	int err;
};

/* --- parts -------------------------------------------------------------------- */

static void add_part(struct reading *r, uintptr_t from, uintptr_t to)
{
	struct dsm_program *p = r->out;

	if (from >= to)
		return;
	if (p->nr_parts == DSM_PROGRAM_PARTS) {
		r->err = -E2BIG;
		return;
	}
	p->part[p->nr_parts++] = (struct dsm_part){ (char *)from, to - from };
}

/* The loader protects whole pages. */
static const ElfW(Phdr) * find(const struct dl_phdr_info *info, ElfW(Word) type)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == type)
			return &info->dlpi_phdr[i];
	return NULL;
}

static void read_parts(struct reading *r, const struct dl_phdr_info *info)
{
	const ElfW(Phdr) *relro = find(info, PT_GNU_RELRO);
	uintptr_t hard = 0, hard_end = 0;

	if (relro) {
		hard = info->dlpi_addr + relro->p_vaddr;
		hard_end = (hard + relro->p_memsz) &
			   ~(uintptr_t)(PAGE_BYTES - 1);
		hard &= ~(uintptr_t)(PAGE_BYTES - 1);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + ph->p_vaddr;
		uintptr_t to = from + ph->p_memsz;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_W))
			continue;
		if (hard_end <= from || hard >= to) {
			add_part(r, from, to);
			continue;
		}
		add_part(r, from, hard);
		add_part(r, hard_end, to);
	}
}

/* --- what is a library's ----------------------------------------------------------- */

struct tables {
	const ElfW(Rela) * rela;
	size_t rela_bytes;
	const ElfW(Sym) * symbols;
};

/* Some loaders have made these addresses absolute, others have not. */
static const void *pointer(const struct dl_phdr_info *info, uintptr_t at)
{
	return (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

static struct tables read_tables(const struct dl_phdr_info *info)
{
	const ElfW(Phdr) *dynamic = find(info, PT_DYNAMIC);
	struct tables t = { 0 };
	const ElfW(Dyn) * d;

	if (!dynamic)
		return t;
	d = (const void *)(info->dlpi_addr + dynamic->p_vaddr);
	for (; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			t.rela = pointer(info, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			t.rela_bytes = d->d_un.d_val;
		else if (d->d_tag == DT_SYMTAB)
			t.symbols = pointer(info, d->d_un.d_ptr);
	}
	return t;
}

static void read_kept(struct reading *r, const struct dl_phdr_info *info)
{
	struct tables t = read_tables(info);
	struct dsm_program *p = r->out;

	if (!t.rela || !t.symbols)
		return;
	for (size_t i = 0; i < t.rela_bytes / sizeof(*t.rela); i++) {
		const ElfW(Rela) *rela = &t.rela[i];

		if (ELF64_R_TYPE(rela->r_info) != COPY_RELOCATION)
			continue;
		if (p->nr_kept == DSM_PROGRAM_KEPT) {
			r->err = -E2BIG;
			return;
		}
		p->kept[p->nr_kept++] = (struct dsm_part){
			(char *)(info->dlpi_addr + rela->r_offset),
			t.symbols[ELF64_R_SYM(rela->r_info)].st_size
		};
	}
}

static int read_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct reading *r = arg;

	(void)size;
	read_parts(r, info);
	read_kept(r, info);
	return 1; /* the first object is the program */
}

int dsm_program_read(struct dsm_program *out)
{
	struct reading r = { .out = out };

	*out = (struct dsm_program){ 0 };
	dl_iterate_phdr(read_program, &r);
	return r.err;
}

bool dsm_program_has(const struct dsm_program *p, const void *at)
{
	for (unsigned int i = 0; i < p->nr_parts; i++)
		if ((uintptr_t)at - (uintptr_t)p->part[i].at < p->part[i].bytes)
			return true;
	return false;
}
