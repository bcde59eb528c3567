// SPDX-License-Identifier: MIT
/*
 * registry.h - a tree of keys with values, in memory, and the text file it comes from and goes to.
 *
 * Names are UTF-16, compared without regard to case. Every function is called with the lock held
 * (nt_registry_lock), which also loads the file the first time. The lock is a leaf but for file
 * access. Keys are never deleted, so a key's address is good for ever.
 */
#ifndef SOFTNDK_NT_REGISTRY_H
#define SOFTNDK_NT_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ntdef.h>

struct nt_value {
    struct nt_value *next; /* in the order of their making */
    WCHAR *name;           /* name_units of them; none: the key's default value */
    size_t name_units;
    uint32_t type;
    uint8_t *data;
    size_t size;
};

struct nt_key {
    struct nt_key *parent, *first_child, *next; /* siblings in the order of their making */
    WCHAR *name;
    size_t name_units;
    bool is_volatile; /* not written to the file */
    bool is_standard; /* every Windows has it: written only if it has values */
    struct nt_value *values;
};

void nt_registry_lock(void);
void nt_registry_unlock(void);

/* "\Registry", whose name and children everything begins with. */
struct nt_key *nt_registry_root(void);

struct nt_key *nt_key_find(const struct nt_key *parent, const WCHAR *name, size_t units);
struct nt_key *nt_key_make(struct nt_key *parent, const WCHAR *name, size_t units);
struct nt_value *nt_value_find(const struct nt_key *key, const WCHAR *name, size_t units);
/* Makes or replaces; false without memory, and nothing changed. */
bool nt_value_set(struct nt_key *key, const WCHAR *name, size_t units, uint32_t type,
                  const void *data, size_t size);

/* The key of a path in UTF-8, made with all that leads to it; also one that begins with
 * HKEY_LOCAL_MACHINE or HKEY_USERS. NULL: no such form, or no memory. */
struct nt_key *nt_key_make_path(const char *path);

/* Writes the file, if there is one. */
void nt_registry_save(void);

/* ---- the file's text (regtext.c) ---- */

/* Enters what the text says; lines that make no sense are logged with their number. The text is
 * changed. */
void nt_registry_read(char *text, const char *name);
/* Tells the lines of all keys that are not volatile. */
void nt_registry_write(void (*line)(void *context, const char *text), void *context);
/* A value as the right side of a line, "dword:5" or "text" or hex; and back. false: makes no sense,
 * or no memory. data is to be freed. */
bool nt_value_parse(const char *text, uint32_t *type, uint8_t **data, size_t *size);

#endif /* SOFTNDK_NT_REGISTRY_H */
