// SPDX-License-Identifier: MIT
/*
 * Sanitizers: a driver that was built with one needs its runtime in the process before anything
 * else. So the program looks into the driver's file before it loads it, and executes itself anew
 * with that runtime in LD_PRELOAD. Also the way into gdb, which has to do the same.
 */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT, personality */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool_args.h"
#include "run.h"

#define AGAIN "SOFTNDK_RUN_AGAIN" /* set for the second execution */

/* A file in memory; every access is checked against its size. */
struct image {
    const uint8_t *data;
    size_t size;
};

static const void *at(const struct image *m, uint64_t offset, uint64_t size)
{
    return offset <= m->size && size <= m->size - offset ? m->data + offset : NULL;
}

static const ElfW(Phdr) * header(const struct image *m, const ElfW(Ehdr) * e, unsigned i)
{
    return at(m, e->e_phoff + (uint64_t)i * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)));
}

/* Where a virtual address lies in the file; m->size when nowhere. */
static uint64_t offset_of(const struct image *m, const ElfW(Ehdr) * e, uint64_t address)
{
    for (unsigned i = 0; i < e->e_phnum; i++) {
        const ElfW(Phdr) *p = header(m, e, i);

        if (p && p->p_type == PT_LOAD && address >= p->p_vaddr &&
            address - p->p_vaddr < p->p_filesz)
            return address - p->p_vaddr + p->p_offset;
    }
    return m->size;
}

static const char *string_at(const struct image *m, uint64_t offset)
{
    const char *text = at(m, offset, 1);

    return text && memchr(text, 0, m->size - offset) ? text : "";
}

static bool is_runtime(const char *name)
{
    return strncmp(name, "libasan.so", 10) == 0 || strncmp(name, "libtsan.so", 10) == 0 ||
           strncmp(name, "libclang_rt.asan", 16) == 0 || strncmp(name, "libclang_rt.tsan", 16) == 0;
}

/* The runtime that the file needs, with its path if that is known; false: none. */
static bool find_runtime(const struct image *m, char *out, size_t size)
{
    const ElfW(Ehdr) *e = at(m, 0, sizeof *e);
    const ElfW(Dyn) *d = NULL;
    const char *runtime = NULL, *where = NULL;
    uint64_t strings = m->size;
    size_t count = 0;

    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
        e->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return false;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        const ElfW(Phdr) *p = header(m, e, i);

        if (p && p->p_type == PT_DYNAMIC) {
            d = at(m, p->p_offset, p->p_filesz);
            count = d ? p->p_filesz / sizeof *d : 0;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (d[i].d_tag == DT_STRTAB)
            strings = offset_of(m, e, d[i].d_un.d_ptr);
    for (size_t i = 0; i < count && d[i].d_tag != DT_NULL; i++) {
        const char *text = string_at(m, strings + d[i].d_un.d_val);

        if (d[i].d_tag == DT_NEEDED && is_runtime(text))
            runtime = text;
        else if (d[i].d_tag == DT_RUNPATH || d[i].d_tag == DT_RPATH)
            where = text;
    }
    if (!runtime)
        return false;
    snprintf(out, size, "%s", runtime);
    while (where && *where) { /* directories between colons */
        int n = (int)strcspn(where, ":");
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%.*s/%s", n, where, runtime);
        if (access(path, R_OK) == 0)
            snprintf(out, size, "%s", path);
        where += n + (where[n] == ':');
    }
    return true;
}

static bool runtime_of(const char *path, char *out, size_t size)
{
    struct stat st;
    struct image m;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false; /* loading will tell */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        m.size = (size_t)st.st_size;
        m.data = mmap(NULL, m.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (m.data != MAP_FAILED) {
            found = find_runtime(&m, out, size);
            munmap((void *)(uintptr_t)m.data, m.size);
        }
    }
    close(fd);
    return found;
}

bool runtime_sanitized(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init");
}

/* One runtime at a time can be in a process: that of the first driver that needs one. */
static bool find_needed(const struct run *run, char *out, size_t size)
{
    if (runtime_sanitized() || getenv(AGAIN))
        return false;
    for (int i = 0; i < run->driver_count; i++)
        if (runtime_of(run->drivers[i].path, out, size))
            return true;
    return false;
}

/* Debugged: the same command in gdb, whose child alone gets the runtime. */
static void exec_gdb(char **argv, const char *preload)
{
    char wrapper[PATH_MAX + 80];
    int argc = 0, n = 0;
    char **args;

    while (argv[argc])
        argc++;
    args = calloc((size_t)argc + 8, sizeof *args);
    if (!args)
        return;
    args[n++] = (char *)(uintptr_t) "gdb";
    args[n++] = (char *)(uintptr_t) "-ex";
    args[n++] = (char *)(uintptr_t) "set breakpoint pending on";
    if (preload) {
        snprintf(wrapper, sizeof wrapper, "set exec-wrapper env " AGAIN "=1 LD_PRELOAD='%s'",
                 preload);
        args[n++] = (char *)(uintptr_t) "-ex";
        args[n++] = wrapper;
    }
    args[n++] = (char *)(uintptr_t) "--args";
    args[n++] = argv[0]; /* a path: the caller has seen to it */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--gdb") != 0)
            args[n++] = argv[i];
    args[n] = NULL;
    setenv("SOFTNDK_TIMEOUTS", "off", 0);
    execvp("gdb", args);
    free(args);
}

bool runtime_prepare(const struct run *run, char **argv)
{
    char self[PATH_MAX], preload[PATH_MAX], whole[2 * PATH_MAX];
    bool needed = find_needed(run, preload, sizeof preload);
    const char *before = getenv("LD_PRELOAD");
    ssize_t length;

    if (!needed && !run->gdb)
        return true;
    if (needed && strstr(preload, "libclang_rt.tsan")) {
        /* It needs to be there before the C++ library, which it needs itself. */
        tool_say("a driver with clang's ThreadSanitizer needs a library built with it, by clang "
                 "(SOFTNDK_SANITIZE=thread); gcc's runs in this one: softndk-cc --gcc");
        return false;
    }
    length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        tool_say("/proc/self/exe: %s", strerror(errno));
        return false;
    }
    self[length] = '\0';
    if (run->gdb) {
        argv[0] = self;
        exec_gdb(argv, needed ? preload : NULL);
        tool_say("cannot run gdb: %s", strerror(errno));
        return false;
    }
    snprintf(whole, sizeof whole, "%s%s%s", preload, before && *before ? ":" : "",
             before ? before : "");
    setenv("LD_PRELOAD", whole, 1);
    setenv(AGAIN, "1", 1);
    if (strstr(preload, "tsan")) /* older ones cannot bear the randomisation of newer kernels */
        (void)personality(ADDR_NO_RANDOMIZE);
    execv(self, argv);
    tool_say("cannot run %s with %s: %s", self, preload, strerror(errno));
    return false;
}
