// SPDX-License-Identifier: MIT
/*
 * The registry as text: the form of exported .reg files, in UTF-8.
 *
 *   [\Registry\Machine\SOFTWARE\Name]      or [HKEY_LOCAL_MACHINE\SOFTWARE\Name]
 *   "Value"="text"                         REG_SZ; \\ and \" inside
 *   "Value"=dword:0000115c                 hexadecimal, as everything but the next
 *   "Value"=4444                           a number: REG_DWORD, or REG_QWORD when it needs more
 *   "Value"=hex:01,02                      REG_BINARY; hex(7): another type
 *   @="text"                               the key's default value
 *   ; a comment; a line that ends with \ goes on in the next
 *
 * Called by registry.c with its lock held.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wdm.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/registry.h"
#include "nt/utf.h"

/* ---- a value's text to its data -------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static bool parse_number(const char *text, int base, size_t octets, uint8_t **data)
{
    char *end;
    unsigned long long n = strtoull(text, &end, base);

    if (end == text || *skip_space(end) || *text == '-' || *text == '+' ||
        (octets == 4 && n > UINT32_MAX))
        return false;
    *data = malloc(8);
    if (!*data)
        return false;
    for (size_t i = 0; i < 8; i++)
        (*data)[i] = (uint8_t)(n >> 8 * i);
    return true;
}

/* "01,02, ff", or nothing. */
static bool parse_octets(const char *text, uint8_t **data, size_t *size)
{
    size_t n = 0;

    *data = malloc(strlen(text) + 1);
    if (!*data)
        return false;
    text = skip_space(text);
    while (*text) {
        int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

        if (high < 0)
            break;
        (*data)[n++] = (uint8_t)(low < 0 ? high : 16 * high + low);
        text = skip_space(text + (low < 0 ? 1 : 2));
        if (*text != ',')
            break;
        text = skip_space(text + 1);
    }
    if (*text) {
        free(*data);
        *data = NULL;
        return false;
    }
    *size = n;
    return true;
}

/* A terminated UTF-16 string. */
static bool parse_string(const char *text, size_t length, uint8_t **data, size_t *size)
{
    size_t units;
    WCHAR *wide = nt_utf16_of_utf8(text, length, &units);

    *data = (uint8_t *)wide;
    *size = (units + 1) * sizeof(WCHAR);
    return wide != NULL;
}

/* Between quotes: a copy with the escapes resolved; *rest behind the closing quote. NULL: no
 * quotes. */
static char *unquote(const char *text, const char **rest)
{
    char *copy = *text == '"' ? malloc(strlen(text)) : NULL;
    size_t n = 0;

    if (!copy)
        return NULL;
    for (text++; *text && *text != '"'; text++) {
        if (*text == '\\' && (text[1] == '\\' || text[1] == '"'))
            text++;
        copy[n++] = *text;
    }
    if (*text != '"') {
        free(copy);
        return NULL;
    }
    copy[n] = '\0';
    *rest = text + 1;
    return copy;
}

static bool parse_quoted(const char *text, uint8_t **data, size_t *size)
{
    const char *rest;
    char *plain = unquote(text, &rest);
    bool good = plain && !*skip_space(rest) && parse_string(plain, strlen(plain), data, size);

    free(plain);
    return good;
}

static bool parse_hex(const char *text, uint32_t *type, uint8_t **data, size_t *size)
{
    unsigned long n = REG_BINARY;
    char *end;

    if (*text == '(') {
        n = strtoul(text + 1, &end, 16);
        if (end == text + 1 || *end != ')' || n > UINT32_MAX)
            return false;
        text = end + 1;
    }
    *type = (uint32_t)n;
    return *text == ':' && parse_octets(text + 1, data, size);
}

bool nt_value_parse(const char *text, uint32_t *type, uint8_t **data, size_t *size)
{
    *data = NULL;
    *type = REG_SZ;
    if (*text == '"')
        return parse_quoted(text, data, size);
    if (strncmp(text, "hex", 3) == 0 && (text[3] == ':' || text[3] == '('))
        return parse_hex(text + 3, type, data, size);
    *type = REG_DWORD;
    *size = 4;
    if (strncmp(text, "dword:", 6) == 0)
        return parse_number(text + 6, 16, 4, data);
    if (parse_number(text, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10, 4, data))
        return true;
    *type = REG_QWORD;
    *size = 8;
    if (strncmp(text, "qword:", 6) == 0)
        return parse_number(text + 6, 16, 8, data);
    if (parse_number(text, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10, 8, data))
        return true;
    *type = REG_SZ;
    return parse_string(text, strlen(text), data, size);
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_key(char *line, struct nt_key **key)
{
    char *end = strrchr(line, ']');

    if (!end || *skip_space(end + 1))
        return false;
    *end = '\0';
    *key = nt_key_make_path(line + 1);
    return *key != NULL;
}

static bool read_value(const char *line, struct nt_key *key)
{
    char *name = NULL;
    WCHAR *wide;
    size_t units, size;
    uint32_t type;
    uint8_t *data = NULL;
    bool good = false;

    if (*line == '@')
        line++;
    else if ((name = unquote(line, &line)) == NULL)
        return false;
    line = skip_space(line);
    wide = nt_utf16_of_utf8(name ? name : "", name ? strlen(name) : 0, &units);
    if (key && wide && *line == '=' && nt_value_parse(skip_space(line + 1), &type, &data, &size))
        good = nt_value_set(key, wide, units, type, data, size);
    free(data);
    free(wide);
    free(name);
    return good;
}

/* Takes a line off the text, with those that it goes on in; NULL at the end. */
static char *next_line(char **text, unsigned *number)
{
    char *begin = *text, *out = *text, *at = *text;

    if (!*at)
        return NULL;
    for (;;) {
        char c = *at ? *at++ : '\n';

        if (c == '\r' && *at == '\n')
            continue;
        if (c == '\n') {
            ++*number;
            if (out == begin || out[-1] != '\\' || !*at)
                break;
            out--;
            continue;
        }
        *out++ = c;
    }
    *text = at;
    while (out > begin && (out[-1] == ' ' || out[-1] == '\t'))
        out--;
    *out = '\0';
    return begin;
}

void nt_registry_read(char *text, const char *name)
{
    struct nt_key *key = NULL;
    unsigned number = 0;
    char *line;

    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while ((line = next_line(&text, &number)) != NULL) {
        bool good = true;

        line += skip_space(line) - line;
        if (*line == '[')
            good = read_key(line, &key);
        else if (*line == '"' || *line == '@')
            good = read_value(line, key);
        else if (*line && *line != ';' && strncmp(line, "Windows Registry Editor", 23) != 0)
            good = false;
        if (!good)
            log_error("%s:%u: no registry key or value: %.60s", name, number, line);
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t length, room;
    bool failed;
};

static void text_add(struct text *t, const char *what, size_t n)
{
    if (t->length + n + 1 > t->room) {
        size_t room = 2 * t->room + n + 256;
        char *more = realloc(t->at, room);

        if (!more) {
            t->failed = true;
            return;
        }
        t->at = more;
        t->room = room;
    }
    memcpy(t->at + t->length, what, n);
    t->length += n;
    t->at[t->length] = '\0';
}

static void text_add_string(struct text *t, const char *what)
{
    text_add(t, what, strlen(what));
}

/* Units as UTF-8, with escapes when they stand in quotes. */
static void text_add_units(struct text *t, const WCHAR *units, size_t count, bool quoted)
{
    char *utf8 = nt_utf8_of_units(units, count);

    if (!utf8) {
        t->failed = true;
        return;
    }
    for (const char *c = utf8; *c; c++) {
        if (quoted && (*c == '"' || *c == '\\'))
            text_add(t, "\\", 1);
        text_add(t, c, 1);
    }
    free(utf8);
}

/* Whether a line can hold these units and give them back. */
static bool is_plain(const WCHAR *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool high = units[i] >= 0xd800 && units[i] < 0xdc00;

        if (units[i] < ' ' || (units[i] >= 0xdc00 && units[i] < 0xe000))
            return false;
        if (high && (i + 1 == count || units[i + 1] < 0xdc00 || units[i + 1] >= 0xe000))
            return false;
        i += high;
    }
    return true;
}

static void text_add_data(struct text *t, const struct nt_value *v)
{
    const WCHAR *units = (const WCHAR *)(const void *)v->data;
    size_t count = v->size / sizeof(WCHAR);
    char number[24];

    if (v->type == REG_SZ && v->size % 2 == 0 && count > 0 && units[count - 1] == 0 &&
        is_plain(units, count - 1)) {
        text_add(t, "\"", 1);
        text_add_units(t, units, count - 1, true);
        text_add(t, "\"", 1);
        return;
    }
    if (v->type == REG_DWORD && v->size == 4) {
        snprintf(number, sizeof number, "dword:%02x%02x%02x%02x", v->data[3], v->data[2],
                 v->data[1], v->data[0]);
        text_add_string(t, number);
        return;
    }
    snprintf(number, sizeof number, v->type == REG_BINARY ? "hex:" : "hex(%x):", v->type);
    text_add_string(t, number);
    for (size_t i = 0; i < v->size; i++) {
        snprintf(number, sizeof number, "%s%02x", i ? "," : "", v->data[i]);
        text_add_string(t, number);
    }
}

static void write_value(const struct nt_value *v, void (*line)(void *, const char *), void *context)
{
    struct text t = {.at = NULL};

    if (!is_plain(v->name, v->name_units)) {
        log_error("registry: a value whose name has control characters is not written");
        return;
    }
    if (v->name_units == 0) {
        text_add_string(&t, "@");
    } else {
        text_add(&t, "\"", 1);
        text_add_units(&t, v->name, v->name_units, true);
        text_add(&t, "\"", 1);
    }
    text_add(&t, "=", 1);
    text_add_data(&t, v);
    if (t.failed)
        log_error("registry: no memory to write a value");
    else
        line(context, t.at);
    free(t.at);
}

/* The path of a key, from the root down. */
static void text_add_path(struct text *t, const struct nt_key *key)
{
    if (!key->parent) {
        text_add_string(t, "\\Registry");
        return;
    }
    text_add_path(t, key->parent);
    text_add(t, "\\", 1);
    text_add_units(t, key->name, key->name_units, false);
}

static void write_key(const struct nt_key *key, void (*line)(void *, const char *), void *context)
{
    struct text t = {.at = NULL};

    if (key->is_volatile)
        return;
    if (key->values || (!key->first_child && !key->is_standard)) {
        text_add(&t, "[", 1);
        text_add_path(&t, key);
        text_add(&t, "]", 1);
        if (!t.failed)
            line(context, t.at);
        free(t.at);
        for (const struct nt_value *v = key->values; v; v = v->next)
            write_value(v, line, context);
    }
    for (const struct nt_key *child = key->first_child; child; child = child->next)
        write_key(child, line, context);
}

void nt_registry_write(void (*line)(void *context, const char *text), void *context)
{
    write_key(nt_registry_root(), line, context);
}
