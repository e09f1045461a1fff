/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_compat.h - all that differs between kernel versions, and nothing else.
 *
 * The oldest kernel is 6.1.  No other file looks at LINUX_VERSION_CODE.
 */
#ifndef SUL_COMPAT_H
#define SUL_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <net/ip6_route.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "sul.ko needs Linux 6.1 or newer"
#endif

#ifdef CONFIG_HIGHMEM
#error "sul.ko reaches pages by their kernel address: not with CONFIG_HIGHMEM"
#endif

/* Of a variable that is written before it is read: kernels clear those. */
#if __has_attribute(__uninitialized__) && !defined(__CHECKER__)
#define SUL_NOT_CLEARED __attribute__((__uninitialized__))
#else
#define SUL_NOT_CLEARED
#endif

/* 6.5: the argument for the vmas is gone.  @flags: others than those for writing to
 * them and keeping them. */
static inline long sul_pin_user_pages(struct mm_struct *mm, unsigned long start,
				      unsigned long nr, unsigned int flags,
				      struct page **pages)
{
	flags |= FOLL_WRITE | FOLL_LONGTERM;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return pin_user_pages_remote(mm, start, nr, flags, pages, NULL, NULL);
#else
	return pin_user_pages_remote(mm, start, nr, flags, pages, NULL);
#endif
}

/* 6.3: flags of a mapping are changed by functions only. */
static inline void sul_vma_flags(struct vm_area_struct *vma, vm_flags_t set,
				 vm_flags_t clear)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags = (vma->vm_flags & ~clear) | set;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

/* 6.15: hrtimer_init() is gone. */
static inline void
sul_hrtimer_setup(struct hrtimer *timer,
		  enum hrtimer_restart (*ring)(struct hrtimer *timer))
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->function = ring;
#else
	hrtimer_setup(timer, ring, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#endif
}

/* 6.16, 6.17: flags of the IP layer at the end. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define SUL_IPCB_FLAGS
#else
#define SUL_IPCB_FLAGS , 0
#endif

#if IS_ENABLED(CONFIG_IPV6)
static inline void sul_udp6_xmit(struct dst_entry *dst, struct sock *sk,
				 struct sk_buff *skb, struct flowi6 *fl)
{
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, &fl->saddr, &fl->daddr, 0,
			     (u8)ip6_dst_hoplimit(dst), 0, fl->fl6_sport,
			     fl->fl6_dport, false SUL_IPCB_FLAGS);
}
#endif

#endif /* SUL_COMPAT_H */
