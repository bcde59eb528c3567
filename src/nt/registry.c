// SPDX-License-Identifier: MIT
/*
 * See registry.h. Also softndk_registry_set() and softndk_registry_tell(), for programs that run a
 * driver. The calls of drivers are in zwkey.c.
 */
#include "nt/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softndk.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "nt/utf.h"
#include "os/os.h"
#include "os/os_file.h"

enum { FILE_MAX = 64 << 20 }; /* octets */

static os_mutex lock = OS_MUTEX_INITIALIZER;
static struct nt_key *root; /* NULL: not loaded yet */
static const char *file;    /* where it is kept, NULL: nowhere */
static const char *file_from = "SOFTNDK_REGISTRY";
static const struct nt_registry_source *source;

void nt_registry_source(const struct nt_registry_source *new)
{
    __atomic_store_n(&source, new, __ATOMIC_RELEASE);
}

static WCHAR upper(WCHAR c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 0xe0 && c <= 0xfe && c != 0xf7) ||
        (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) || (c >= 0x430 && c <= 0x44f))
        return (WCHAR)(c - 0x20);
    if (c >= 0x450 && c <= 0x45f)
        return (WCHAR)(c - 0x50);
    return c;
}

static bool same_name(const WCHAR *a, size_t a_units, const WCHAR *b, size_t b_units)
{
    if (a_units != b_units)
        return false;
    for (size_t i = 0; i < a_units; i++)
        if (a[i] != b[i] && (RED("nt-registry-case-matters") || upper(a[i]) != upper(b[i])))
            return false;
    return true;
}

/* A copy of n bytes, never NULL for n = 0. */
static void *copy_of(const void *from, size_t n)
{
    void *copy = malloc(n ? n : 1);

    if (copy && n)
        memcpy(copy, from, n);
    return copy;
}

struct nt_key *nt_key_find(const struct nt_key *parent, const WCHAR *name, size_t units)
{
    struct nt_key *key = parent->first_child;

    while (key && !same_name(key->name, key->name_units, name, units))
        key = key->next;
    return key;
}

struct nt_key *nt_key_make(struct nt_key *parent, const WCHAR *name, size_t units)
{
    struct nt_key *key = calloc(1, sizeof *key), **at = &parent->first_child;

    if (!key)
        return NULL;
    key->name = copy_of(name, units * sizeof *name);
    if (!key->name) {
        free(key);
        return NULL;
    }
    key->name_units = units;
    key->parent = parent;
    key->is_volatile = parent->is_volatile;
    while (*at)
        at = &(*at)->next;
    *at = key;
    return key;
}

struct nt_value *nt_value_find(const struct nt_key *key, const WCHAR *name, size_t units)
{
    struct nt_value *value = key->values;

    while (value && !same_name(value->name, value->name_units, name, units))
        value = value->next;
    return value;
}

static struct nt_value *value_make(struct nt_key *key, const WCHAR *name, size_t units)
{
    struct nt_value *value = calloc(1, sizeof *value), **at = &key->values;

    if (!value)
        return NULL;
    value->name = copy_of(name, units * sizeof *name);
    if (!value->name) {
        free(value);
        return NULL;
    }
    value->name_units = units;
    while (*at)
        at = &(*at)->next;
    *at = value;
    return value;
}

bool nt_value_set(struct nt_key *key, const WCHAR *name, size_t units, uint32_t type,
                  const void *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    struct nt_value *value;

    if (!copy)
        return false;
    value = nt_value_find(key, name, units);
    if (!value)
        value = value_make(key, name, units);
    if (!value) {
        free(copy);
        return false;
    }
    free(value->data);
    value->type = type;
    value->data = copy;
    value->size = size;
    return true;
}

/* ---- by path in UTF-8, for the file and for programs ------------------------------------------
 */

/* The part of a path that names below what; NULL when it begins otherwise. */
static const char *below(const char *path, const char *what)
{
    size_t n = strlen(what);

    for (size_t i = 0; i < n; i++)
        if (upper((WCHAR)(unsigned char)path[i]) != upper((WCHAR)(unsigned char)what[i]))
            return NULL;
    return path[n] == '\\' || path[n] == '\0' ? path + n : NULL;
}

struct nt_key *nt_key_make_path(const char *path)
{
    struct nt_key *key = root;
    const char *rest = below(path, "\\Registry");

    if (!rest && (rest = below(path, "HKEY_LOCAL_MACHINE")) != NULL)
        key = nt_key_find(root, u"Machine", 7);
    if (!rest && (rest = below(path, "HKEY_USERS")) != NULL)
        key = nt_key_find(root, u"User", 4);
    while (rest && key && *rest == '\\') {
        const char *begin = rest + 1, *end = strchr(begin, '\\');
        size_t length = end ? (size_t)(end - begin) : strlen(begin), units;
        struct nt_key *next;
        WCHAR *name;

        if (length == 0)
            return NULL;
        name = nt_utf16_of_utf8(begin, length, &units);
        if (!name)
            return NULL;
        next = nt_key_find(key, name, units);
        key = next ? next : nt_key_make(key, name, units);
        free(name);
        rest = begin + length;
    }
    return rest ? key : NULL;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* What every Windows has, so that a driver can make its own key below. */
static void make_standard(void)
{
    static const char *const paths[] = {
        "\\Registry\\Machine\\SOFTWARE",
        "\\Registry\\Machine\\SYSTEM\\CurrentControlSet\\Control",
        "\\Registry\\Machine\\SYSTEM\\CurrentControlSet\\Services",
        "\\Registry\\User",
    };

    root = calloc(1, sizeof *root);
    if (!root) {
        log_error("registry: no memory");
        abort();
    }
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct nt_key *key = nt_key_make_path(paths[i]);

        for (; key; key = key->parent)
            key->is_standard = true;
    }
}

static void load_file(void)
{
    size_t length;
    char *text;
    int rc;

    rc = os_file_read(file, FILE_MAX, &text, &length);
    if (rc == -ENOENT) /* it will be made */
        return;
    if (rc < 0) {
        log_error("%s: cannot read \"%s\" (%s)", file_from, file, strerror(-rc));
        file = NULL;
        return;
    }
    nt_registry_read(text, file);
    free(text);
}

/* Lock held. */
static NTSTATUS set_value(const char *key, const char *name, const char *value)
{
    NTSTATUS status = STATUS_INVALID_PARAMETER;
    size_t units, size;
    uint8_t *data = NULL;
    struct nt_key *at;
    uint32_t type;
    WCHAR *wide = nt_utf16_of_utf8(name, strlen(name), &units);

    if (wide && nt_value_parse(value, &type, &data, &size)) {
        at = nt_key_make_path(key);
        if (at)
            status = nt_value_set(at, wide, units, type, data, size)
                         ? STATUS_SUCCESS
                         : STATUS_INSUFFICIENT_RESOURCES;
    }
    free(data);
    free(wide);
    return status;
}

static void set_configured(const char *key, const char *name, const char *value)
{
    if (!NT_SUCCESS(set_value(key, name, value)))
        log_error("registry: cannot set \"%s\" of %s", name, key);
}

static void load(void)
{
    const struct nt_registry_source *more = __atomic_load_n(&source, __ATOMIC_ACQUIRE);

    make_standard();
    file = getenv("SOFTNDK_REGISTRY");
    if (!file || !*file) {
        file = more ? more->file() : NULL;
        file_from = "configuration: [registry] file";
    }
    if (file)
        load_file();
    if (more)
        more->values(set_configured);
}

void nt_registry_lock(void)
{
    os_mutex_lock(&lock);
    if (!root)
        load();
}

void nt_registry_unlock(void)
{
    os_mutex_unlock(&lock);
}

struct nt_key *nt_registry_root(void)
{
    return root;
}

struct writing {
    int fd, error;
    int64_t at;
};

static void write_line(void *context, const char *text)
{
    struct writing *w = context;
    size_t n = strlen(text);

    if (!w->error)
        w->error = os_file_write(w->fd, text, n, w->at);
    if (!w->error)
        w->error = os_file_write(w->fd, "\n", 1, w->at + (int64_t)n);
    w->at += (int64_t)n + 1;
}

/* A new file takes the old one's place, so that nobody ever sees half of it. */
void nt_registry_save(void)
{
    struct writing w = {.error = 0};
    char beside[OS_PATH_MAX];

    if (!file || RED("nt-registry-not-saved"))
        return;
    snprintf(beside, sizeof beside, "%s.%u", file, os_pid());
    w.fd = os_file_open(beside, OS_FILE_WRITE | OS_FILE_CREATE);
    if (w.fd < 0) {
        w.error = w.fd;
    } else {
        w.error = os_file_truncate(w.fd);
        nt_registry_write(write_line, &w);
        os_file_close(w.fd);
        if (!w.error)
            w.error = os_file_rename(beside, file);
        if (w.error)
            os_file_remove(beside);
    }
    if (w.error)
        log_error("%s: cannot write \"%s\" (%s)", file_from, file, strerror(-w.error));
}

/* ---- for programs --------------------------------------------------------------------------- */

NTSTATUS softndk_registry_set(const char *key, const char *name, const char *value)
{
    NTSTATUS status;

    if (!key || !name || !value)
        return STATUS_INVALID_PARAMETER;
    nt_registry_lock();
    status = set_value(key, name, value);
    if (NT_SUCCESS(status))
        nt_registry_save();
    nt_registry_unlock();
    return status;
}

void softndk_registry_tell(void (*line)(void *context, const char *text), void *context)
{
    nt_registry_lock();
    nt_registry_write(line, context);
    nt_registry_unlock();
}
