// SPDX-License-Identifier: MIT
/*
 * Files: where this code stands, a small file as a whole, the names in a directory. Read only.
 * No state, no lock; called when an adapter is opened, never on the way of data.
 */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/red.h"
#include "os/os.h"

/* The path of a line of /proc/self/maps that covers address, or NULL. */
static char *map_path(char *line, uintptr_t address)
{
    uintptr_t from, to;
    int used = 0;
    char *path;

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR "%n", &from, &to, &used) != 2 || address < from ||
        address >= to)
        return NULL;
    path = strchr(line + used, '/');
    if (path)
        path[strcspn(path, "\n")] = '\0';
    return path;
}

int os_module_dir(char *out, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL, *path = NULL;
    size_t room = 0;
    int rc = -ENOENT;

    if (!maps)
        return -errno;
    while (!path && getline(&line, &room, maps) > 0)
        path = map_path(line, (uintptr_t)os_module_dir);
    if (path) {
        *strrchr(path, '/') = '\0';
        rc = strlen(path) < size ? 0 : -ENAMETOOLONG;
    }
    if (rc == 0)
        memcpy(out, path, strlen(path) + 1);
    free(line);
    fclose(maps);
    return rc;
}

/* Reads until the end or until size octets are there; how many, or -errno. */
static ssize_t read_whole(int fd, char *to, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t n = read(fd, to + have, size - have);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            have += (size_t)n;
    }
    return (ssize_t)have;
}

int os_file_read(const char *path, size_t max, char **out, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make it wait */
    struct stat st;
    char *text;
    ssize_t n;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    text = malloc(max + 1);
    /* One more than allowed, to see whether there is one. */
    n = text ? read_whole(fd, text, max + 1) : -ENOMEM;
    close(fd);
    if (n > (ssize_t)max)
        n = RED("os-file-cut") ? (ssize_t)max : -EFBIG;
    if (n < 0) {
        free(text);
        return (int)n;
    }
    text[n] = '\0';
    *out = text;
    *length = (size_t)n;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int os_dir_list(const char *path, char (*names)[OS_FILE_NAME_MAX], int max)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;
    int count = 0;

    if (!dir)
        return -errno;
    while (count < max && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= OS_FILE_NAME_MAX ||
            fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
            continue;
        strcpy(names[count++], entry->d_name);
    }
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, by_name);
    return count;
}
