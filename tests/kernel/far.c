/* SPDX-License-Identifier: MIT */
/*
 * far.c - a remote shell for machines of a test, which nobody else can reach.
 *
 * Role:      what jiarun needs of ssh: a command runs on another host, its
 *            standard input, output, errors and exit status are here.
 * On the wire: a length and the command, and then what comes on standard input;
 *            back come frames of output, errors and at the end the status.
 * Invariant: when the asking side has gone the command's input ends; it is the
 *            command's business to end then (jiarun's keeper does).
 * Threads:   one for each connection, a process.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"

enum {
	COMMAND_MAX = 65536,
	CHUNK = 16384, /* of a frame */
	LISTEN_BACKLOG = 16,
	STATUS_LOST = 255, /* as ssh has it */
	STATUS_SIGNAL = 128, /* as a shell has it */
};

enum frame_kind {
	FRAME_OUT = STDOUT_FILENO,
	FRAME_ERR = STDERR_FILENO,
	FRAME_STATUS
};

struct frame {
	uint32_t kind, len; /* FRAME_STATUS: the status, and nothing follows */
};

static bool write_all(int fd, const void *from, size_t len)
{
	const char *at = from;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_all(int sock, void *to, size_t len)
{
	return recv(sock, to, len, MSG_WAITALL) == (ssize_t)len;
}

static bool frame_send(int sock, enum frame_kind kind, const void *body,
		       size_t len)
{
	struct frame f = { (uint32_t)kind, (uint32_t)len };

	return write_all(sock, &f, sizeof(f)) &&
	       (!body || write_all(sock, body, len));
}

/* Close what is not to be polled any more. */
static void end(struct pollfd *p)
{
	close(p->fd);
	p->fd = -1;
}

/* --- the side that runs it ------------------------------------------------------- */

struct job {
	int sock;
	int in; /* of the command; -1: closed */
	pid_t pid;
	struct pollfd p[3]; /* the connection, output, errors */
};

static void to_command(struct job *j)
{
	char buf[CHUNK];
	ssize_t n = read(j->sock, buf, sizeof(buf));

	if (n > 0 && write_all(j->in, buf, (size_t)n))
		return;
	close(j->in);
	j->in = -1;
	j->p[0].fd = -1;
}

static void from_command(struct job *j, struct pollfd *p, enum frame_kind kind)
{
	char buf[CHUNK];
	ssize_t n = read(p->fd, buf, sizeof(buf));

	if (n <= 0 || !frame_send(j->sock, kind, buf, (size_t)n))
		end(p);
}

static void relay(struct job *j)
{
	while (j->p[1].fd >= 0 || j->p[2].fd >= 0) {
		if (poll(j->p, 3, -1) < 0)
			continue;
		if (j->p[0].fd >= 0 && j->p[0].revents)
			to_command(j);
		if (j->p[1].fd >= 0 && j->p[1].revents)
			from_command(j, &j->p[1], FRAME_OUT);
		if (j->p[2].fd >= 0 && j->p[2].revents)
			from_command(j, &j->p[2], FRAME_ERR);
	}
}

static _Noreturn void command_run(const char *command, int in, int out, int err)
{
	setsid();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		_exit(STATUS_LOST);
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
		close(fd); /* no other connection stays open by us */
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(STATUS_LOST);
}

static int command_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return STATUS_LOST;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   STATUS_SIGNAL + WTERMSIG(status);
}

static void serve(int sock)
{
	static char command[COMMAND_MAX + 1];
	struct job j = { .sock = sock };
	int in[2], out[2], err[2];
	uint32_t len;

	if (!read_all(sock, &len, sizeof(len)) || len > COMMAND_MAX ||
	    !read_all(sock, command, len) || pipe(in) || pipe(out) || pipe(err))
		return;
	command[len] = 0;
	j.pid = fork();
	if (!j.pid)
		command_run(command, in[0], out[1], err[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	j.in = in[1];
	j.p[0] = (struct pollfd){ .fd = sock, .events = POLLIN };
	j.p[1] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	j.p[2] = (struct pollfd){ .fd = err[0], .events = POLLIN };
	relay(&j);
	frame_send(sock, FRAME_STATUS, NULL, (size_t)command_status(j.pid));
}

int kernel_far_serve(int argc, char **argv)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	int sock = socket(AF_INET6, SOCK_STREAM, 0), one = 1;

	if (argc != 2)
		return 2;
	at.sin6_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(sock, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(sock, LISTEN_BACKLOG)) {
		perror("far-serve");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int conn = accept(sock, NULL, NULL);

		if (conn < 0)
			continue;
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			close(sock);
			serve(conn);
			_exit(0);
		}
		close(conn);
	}
}

/* --- the side that asks ----------------------------------------------------------- */

static int far_connect(const char *host)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *found;
	const char *port = getenv("FAR_PORT");
	int sock, one = 1;

	if (getaddrinfo(host, port ? port : "514", &want, &found))
		return -1;
	sock = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(sock, found->ai_addr, found->ai_addrlen)) {
		close(sock);
		sock = -1;
	} else {
		setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	freeaddrinfo(found);
	return sock;
}

/* One frame; the command's status if that was it, or -1. */
static int far_frame(int sock)
{
	char buf[CHUNK];
	struct frame f;

	if (!read_all(sock, &f, sizeof(f)))
		return STATUS_LOST;
	if (f.kind == FRAME_STATUS)
		return (int)f.len;
	if (f.len > sizeof(buf) || !read_all(sock, buf, f.len) ||
	    !write_all((int)f.kind, buf, f.len))
		return STATUS_LOST;
	return -1;
}

static int far_relay(int sock)
{
	struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
			       { .fd = sock, .events = POLLIN } };
	char buf[CHUNK];
	int status = -1;

	while (status < 0) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].fd >= 0 && p[0].revents) {
			ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

			if (n <= 0 || !write_all(sock, buf, (size_t)n)) {
				p[0].fd = -1;
				shutdown(sock, SHUT_WR);
			}
		}
		if (p[1].revents)
			status = far_frame(sock);
	}
	return status;
}

int kernel_far(int argc, char **argv)
{
	const char *host, *command;
	uint32_t len;
	int sock;

	if (argc < 3)
		return 2;
	host = argv[argc - 2];
	command = argv[argc - 1];
	len = (uint32_t)strlen(command);
	signal(SIGPIPE, SIG_IGN);
	sock = far_connect(host);
	if (sock < 0 || !write_all(sock, &len, sizeof(len)) ||
	    !write_all(sock, command, len)) {
		fprintf(stderr, "far: %s does not answer\n", host);
		return STATUS_LOST;
	}
	return far_relay(sock);
}
