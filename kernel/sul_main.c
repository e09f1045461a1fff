// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_main.c - /dev/sul: loading, unloading, and the calls of sul_abi.h.
 *
 * Role:    takes a call's structure in, whatever version it is of, sees that the
 *          caller may, and hands it on; maps the status page and landing area.
 * Context: process context throughout; may sleep.
 * Locks:   none of its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "sul.h"
#include "sul_compat.h"

/* The structure that a call comes with. */
union sul_arg {
	struct sul_hello hello;
	struct sul_port_spec port;
	struct sul_socket_spec socket;
	struct sul_start start;
	struct sul_peer_spec peer;
	struct sul_submit submit;
	struct sul_wait wait;
	struct sul_wake wake;
	struct sul_count count;
};

/* --- HELLO --------------------------------------------------------------------------- */

enum {
	OLDEST_VERSION = 1 /* that is still understood */
};

static long hello(struct sul_port *p, struct sul_hello *h)
{
	u32 theirs = h->version;

	if (h->oldest || h->features)
		return -EINVAL;
	h->version = SUL_ABI_VERSION;
	h->oldest = OLDEST_VERSION;
	h->features = sul_seal_known() ? SUL_FEATURE_AEAD : 0;
	if (theirs < OLDEST_VERSION || theirs > SUL_ABI_VERSION)
		return -EPROTO;
	sul_port_greet(p);
	return 0;
}

/* --- calls ----------------------------------------------------------------------------- */

/* A row of the table of calls. */
struct sul_call {
	unsigned int cmd;
	u16 first, now; /* size of its structure in version 1, and here */
	enum sul_stage stage; /* that the port must have reached */
	long (*run)(struct sul_port *p, union sul_arg *arg);
};

#define RUN(name, member, function)                                    \
	static long run_##name(struct sul_port *p, union sul_arg *arg) \
	{                                                              \
		return function(p, &arg->member);                      \
	}
RUN(hello, hello, hello)
RUN(port, port, sul_port_make)
RUN(socket, socket, sul_core_socket)
RUN(start, start, sul_port_start)
RUN(peer, peer, sul_port_peer)
RUN(wait, wait, sul_wait_for)
RUN(wake, wake, sul_wake_rank)
RUN(count, count, sul_count_read)
#undef RUN

static const struct sul_call calls[] = {
#define CALL(NAME, name, type, first, stage)                               \
	[_IOC_NR(SUL_IOC_##NAME)] = { SUL_IOC_##NAME, first, sizeof(type), \
				      SUL_STAGE_##stage, run_##name }
	CALL(HELLO, hello, struct sul_hello, 16, OPEN),
	CALL(PORT, port, struct sul_port_spec, 72, HELLO),
	CALL(SOCKET, socket, struct sul_socket_spec, 8, PORT),
	CALL(START, start, struct sul_start, 152, PORT),
	CALL(PEER, peer, struct sul_peer_spec, 160, PORT),
	CALL(WAIT, wait, struct sul_wait, 56, START),
	CALL(WAKE, wake, struct sul_wake, 8, START),
	CALL(COUNT, count, struct sul_count, 16, PORT),
#undef CALL
};

/*
 * The structure at @uarg, of whatever size it says, to @arg, which has room for
 * @now bytes.  Read at least as long as in version 1, so a good caller's is read
 * once.
 */
static int take_arg(void *arg, const void __user *uarg, size_t first,
		    size_t now)
{
	u32 *size = arg;
	u32 theirs;
	int err;

	if (copy_from_user(arg, uarg, first))
		return -EFAULT;
	theirs = *size;
	if (theirs == first) {
		memset(arg + first, 0, now - first);
		return 0;
	}
	if (theirs < first)
		return -EINVAL;
	if (theirs > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(arg, now, uarg, theirs);
	*size = theirs; /* as it was checked: it may have changed meanwhile */
	return err;
}

static int give_arg(void __user *uarg, const void *arg, size_t now)
{
	const u32 *size = arg;

	return copy_to_user(uarg, arg, min_t(size_t, *size, now)) ? -EFAULT : 0;
}

static int check_stage(const struct sul_port *p, enum sul_stage needed)
{
	enum sul_stage stage = sul_port_stage(p);

	if (stage >= needed)
		return 0;
	return stage < SUL_STAGE_HELLO ? -EPROTO : -EINVAL;
}

/* Whatever size it has in the number: the structure says it itself. */
static bool is_submit(unsigned int cmd)
{
	const unsigned int size = IOCSIZE_MASK;

	return (cmd & ~size) == (SUL_IOC_SUBMIT & ~size);
}

/*
 * take_arg() and give_arg() of a SUBMIT as it is in this version, word by word:
 * for so little that is quicker than any copy.
 */
static int take_submit(struct sul_submit *s, const void __user *uarg)
{
	const struct sul_submit __user *from = uarg;

	if (!user_read_access_begin(from, sizeof(*from)))
		return -EFAULT;
	unsafe_get_user(s->size, &from->size, fault);
	unsafe_get_user(s->flags, &from->flags, fault);
	unsafe_get_user(s->ops, &from->ops, fault);
	unsafe_get_user(s->nr, &from->nr, fault);
	unsafe_get_user(s->done, &from->done, fault);
	unsafe_get_user(s->ticket, &from->ticket, fault);
	user_read_access_end();
	if (likely(s->size == sizeof(*s)))
		return 0;
	return take_arg(s, uarg, sizeof(*s), sizeof(*s));

fault:
	user_read_access_end();
	return -EFAULT;
}

static int give_submit(void __user *uarg, const struct sul_submit *s)
{
	struct sul_submit __user *to = uarg;

	if (!user_write_access_begin(to, sizeof(*to)))
		return -EFAULT;
	unsafe_put_user(s->done, &to->done, fault);
	unsafe_put_user(s->ticket, &to->ticket, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/* As a row of the table, but that nothing is done that it can do without. */
static long call_submit(struct sul_port *p, void __user *uarg)
{
	u64 entered_ns = sul_is_traced(p) ? ktime_get_ns() : 0;
	struct sul_submit s;
	long err, bad;

	err = take_submit(&s, uarg);
	if (!err)
		err = check_stage(p, SUL_STAGE_START);
	if (err)
		return err;
	if (sul_is_traced(p))
		WRITE_ONCE(p->status->trace[SUL_TRACE_ENTER], entered_ns);
	err = sul_submit(p, &s);
	bad = give_submit(uarg, &s);
	return bad ? bad : err;
}

static long call(struct sul_port *p, unsigned int cmd, void __user *uarg)
{
	const struct sul_call *c;
	union sul_arg arg;
	long err, bad = 0;

	if (_IOC_NR(cmd) >= ARRAY_SIZE(calls))
		return -ENOTTY;
	c = &calls[_IOC_NR(cmd)];
	/* But for the size, which the structure says itself. */
	if (!c->run || _IOC_TYPE(cmd) != SUL_IOC_MAGIC ||
	    _IOC_DIR(cmd) != _IOC_DIR(c->cmd))
		return -ENOTTY;
	err = take_arg(&arg, uarg, c->first, c->now);
	if (!err)
		err = check_stage(p, c->stage);
	if (err)
		return err;
	err = c->run(p, &arg);
	if (_IOC_DIR(cmd) & _IOC_READ)
		bad = give_arg(uarg, &arg, c->now);
	memzero_explicit(&arg, sizeof(arg)); /* a key may be in it */
	return bad ? bad : err;
}

static long sul_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sul_port *p = file->private_data;

	/* Not a child's, nor anybody's to whom the descriptor was sent. */
	if (p->mm != current->mm)
		return -EPERM;
	if (is_submit(cmd))
		return call_submit(p, (void __user *)arg);
	if (cmd == SUL_IOC_NULL)
		return 0;
	return call(p, cmd, (void __user *)arg);
}

/* --- mappings ------------------------------------------------------------------------ */

static int map_pages(struct vm_area_struct *vma, const char *from, size_t bytes)
{
	if (vma->vm_end - vma->vm_start != bytes || !bytes)
		return -EINVAL;
	for (size_t at = 0; at < bytes; at += PAGE_SIZE) {
		int err = vm_insert_page(vma, vma->vm_start + at,
					 vmalloc_to_page(from + at));

		if (err)
			return err;
	}
	return 0;
}

static int sul_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct sul_port *p = file->private_data;

	if (p->mm != current->mm)
		return -EPERM;
	if (sul_port_stage(p) < SUL_STAGE_PORT)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC) ||
	    !(vma->vm_flags & VM_SHARED))
		return -EACCES;
	/* Read-only for good, and not for children. */
	sul_vma_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		      VM_MAYWRITE | VM_MAYEXEC);
	switch ((u64)vma->vm_pgoff << PAGE_SHIFT) {
	case SUL_MAP_STATUS:
		return map_pages(vma, (char *)p->status, PAGE_SIZE);
	case SUL_MAP_LANDING:
		return map_pages(vma, p->landing, p->spec.landing_bytes);
	default:
		return -EINVAL;
	}
}

/* --- the device ---------------------------------------------------------------------- */

static int sul_open(struct inode *inode, struct file *file)
{
	struct sul_port *p;
	int err = sul_port_open(&p);

	if (err)
		return err;
	file->private_data = p;
	return 0;
}

static int sul_release(struct inode *inode, struct file *file)
{
	sul_port_close(file->private_data);
	return 0;
}

static const struct file_operations sul_fops = {
	.owner = THIS_MODULE,
	.open = sul_open,
	.release = sul_release,
	.unlocked_ioctl = sul_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = sul_mmap,
	.llseek = noop_llseek,
};

static struct miscdevice sul_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "sul",
	.fops = &sul_fops,
	.mode = 0660,
};

static int __init sul_init(void)
{
	int err = sul_count_init();

	if (err)
		return err;
	err = misc_register(&sul_device);
	if (err)
		sul_count_exit();
	return err;
}

static void __exit sul_exit(void)
{
	misc_deregister(&sul_device);
	sul_count_exit();
}

module_init(sul_init);
module_exit(sul_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION(
	"Semi-user-level messages: one trap to send, none to receive");
