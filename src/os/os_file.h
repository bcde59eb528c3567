// SPDX-License-Identifier: MIT
/*
 * Files and directories to write to, for the simulated kernel's; os.h reads them. Paths are the
 * host's, octets without meaning. Results as in os.h: 0, a count or a descriptor, or a negative
 * errno value; EINTR never leaves.
 */
#ifndef SOFTNDK_OS_FILE_H
#define SOFTNDK_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OS_PATH_MAX 4096

struct os_file_info {
    bool directory;
    uint64_t volume, id; /* together they tell one file from every other */
};

enum { OS_FILE_READ = 1, OS_FILE_WRITE = 2, OS_FILE_CREATE = 4, OS_FILE_EXCLUSIVE = 8 };

int os_file_open(const char *path, unsigned flags);
int os_file_close(int fd);
int os_file_truncate(int fd);
/* All of it; offset < 0: at the end of the file. */
int os_file_write(int fd, const void *buf, size_t len, int64_t offset);
int64_t os_file_size(int fd);
int os_file_info(const char *path, struct os_file_info *out);
int os_file_rename(const char *from, const char *to);
int os_file_remove(const char *path); /* a file, or an empty directory */
int os_dir_make(const char *path);    /* for this user alone */
/* The name of the directory's entry that differs from `name` at most in the case of its letters
 * a-z, the exact one if there are several; name has at most 255 octets, found room for 256. */
int os_dir_find(const char *dir, const char *name, char *found);
/* Where temporary files go; a number that tells this user from others. */
const char *os_temp_dir(void);
unsigned os_user_id(void);

#endif
