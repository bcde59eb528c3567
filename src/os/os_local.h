// SPDX-License-Identifier: MIT
/*
 * Sockets within this host, between processes of one user: listening ones stand under their names
 * in a directory that is this user's alone. Results as in os.h: 0, a count or a descriptor, or a
 * negative errno value; EINTR never leaves. Descriptors are non-blocking and close-on-exec.
 *
 * Names are relative to a directory's descriptor, so paths may be of any length, and nothing that
 * happens to the path later leads elsewhere. No state, no lock.
 */
#ifndef SOFTNDK_OS_LOCAL_H
#define SOFTNDK_OS_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A directory that exists, or with `make` one that is made (its parent exists): of this user, with
 * mode 0700, not a link. Its descriptor, or -errno and why in words. */
int os_local_dir(const char *path, bool make, char *why, size_t size);
/* Is it a directory of this user's? */
bool os_local_owned(const char *path);
/* Calls fn for each name in it, in no order, at most `most` times. 0 or -errno. */
int os_local_names(int dir, unsigned most, void (*fn)(void *context, const char *name),
                   void *context);

/* A listening socket under that name, in place of what was there. Whoever finds the name finds it
 * listening: until then it stands under the name with ".new" behind, where a dead process may have
 * left one. */
int os_local_listen(int dir, const char *name, int backlog);
/* -ECONNREFUSED: nobody listens there any more; -EAGAIN: its queue is full. */
int os_local_connect(int dir, const char *name);
/* -EAGAIN: nobody waits; -EPERM: it is another user's, and closed already. */
int os_local_accept(int fd);
/* Whose process is at the other end: the one that listens, or that connects. The process is 0 where
 * this one cannot see it. */
int os_local_peer(int fd, uint32_t *user, uint32_t *process);
ssize_t os_local_send(int fd, const void *buf, size_t len);
ssize_t os_local_recv(int fd, void *buf, size_t len); /* 0: the other end is closed */
void os_local_close(int fd);
int os_local_remove(int dir, const char *name);
/* When the name was made, seconds ago; -errno. */
int64_t os_local_age_s(int dir, const char *name);

/* A descriptor that os_local_wait() sees as readable after os_local_wake(), once and for all. */
int os_local_wake_new(void);
void os_local_wake(int fd);

struct os_local_wait {
    int fd;           /* < 0: not waited for */
    bool read, write; /* what for */
    bool ready;       /* the result; also when the other end is gone */
};
/* How many are ready; timeout_us < 0: waits for ever. */
int os_local_wait(struct os_local_wait *list, unsigned count, int64_t timeout_us);

/* Is there a process with this number, of whatever user? */
bool os_process_exists(uint32_t pid);
uint32_t os_user(void); /* the one whose rights this process has */

/* For tests: the user that os_local_dir() and os_local_accept() take this process for; < 0: its
 * own. */
extern _Atomic int64_t os_local_user;

#endif
