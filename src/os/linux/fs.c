// SPDX-License-Identifier: MIT
/*
 * os_file.h by POSIX calls. No state.
 */
#define _GNU_SOURCE 1

#include "os/os_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/red.h"

int os_file_open(const char *path, unsigned flags)
{
    int mode = flags & OS_FILE_WRITE ? (flags & OS_FILE_READ ? O_RDWR : O_WRONLY) : O_RDONLY;
    int fd;

    if (flags & OS_FILE_CREATE)
        mode |= O_CREAT;
    if (flags & OS_FILE_EXCLUSIVE)
        mode |= O_EXCL;
    do {
        fd = open(path, mode | O_CLOEXEC | O_NOCTTY, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int os_file_close(int fd)
{
    /* Interrupted or not, the descriptor is gone. */
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

int os_file_truncate(int fd)
{
    int rc;

    do {
        rc = ftruncate(fd, 0);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

int64_t os_file_size(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 ? -errno : (int64_t)st.st_size;
}

int os_file_write(int fd, const void *buf, size_t len, int64_t offset)
{
    size_t done = 0;

    if (offset < 0)
        offset = os_file_size(fd);
    if (offset < 0)
        return (int)offset;
    while (done < len) {
        ssize_t n = pwrite(fd, (const char *)buf + done, len - done, (off_t)offset + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

int os_file_info(const char *path, struct os_file_info *out)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    out->directory = S_ISDIR(st.st_mode);
    out->volume = (uint64_t)st.st_dev;
    out->id = (uint64_t)st.st_ino;
    return 0;
}

int os_file_rename(const char *from, const char *to)
{
    return rename(from, to) < 0 ? -errno : 0;
}

int os_file_remove(const char *path)
{
    return remove(path) < 0 ? -errno : 0;
}

int os_dir_make(const char *path)
{
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

int os_dir_find(const char *dir, const char *name, char *found)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = -ENOENT;

    if (!d)
        return -errno;
    while ((entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, name) != 0 &&
            (rc == 0 || strcasecmp(entry->d_name, name) != 0 || RED("os-dir-case-matters")))
            continue;
        snprintf(found, 256, "%s", entry->d_name);
        rc = 0;
        if (strcmp(found, name) == 0)
            break;
    }
    closedir(d);
    return rc;
}

const char *os_temp_dir(void)
{
    const char *dir = getenv("TMPDIR");

    return dir && *dir ? dir : "/tmp";
}

unsigned os_user_id(void)
{
    return (unsigned)getuid();
}
