// SPDX-License-Identifier: MIT
/* See read.h. No state. */
#include "read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/adapter_tell.h"

#define FIELDS_MAX 32

const char *const read_counter_names[READ_COUNTERS] = {
    "Connect", "Accept",       "ConnectFailure", "ConnectionError", "ActiveConnection",
    "CQError", "RDMAInOctets", "RDMAOutOctets",  "RDMAInFrames",    "RDMAOutFrames",
};

struct field {
    const char *key;
    const char *text; /* NULL: a number, or true and false as 1 and 0 */
    uint64_t number;
};

struct line {
    struct field fields[FIELDS_MAX];
    unsigned count;
};

/* ---- a line --------------------------------------------------------------------------------- */

static char *put_character(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* Behind \u: four digits; false: they are not. A half of a surrogate pair, or the terminator, is
 * U+FFFD: no such thing is in an answer of ours. */
static bool take_code(char **at, char **out)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++) {
        char c = (*at)[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return false;
        code = code * 16 + (unsigned)digit;
    }
    *at += 4;
    *out = put_character(*out, code == 0 || (code & 0xf800) == 0xd800 ? 0xfffd : code);
    return true;
}

/* A string, in place: what is escaped is longer than what it means. NULL: it is none. */
static char *take_string(char **at)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char *in = *at, *out, *begin;

    if (*in != '"')
        return NULL;
    begin = out = ++in;
    while (*in != '"') {
        if ((unsigned char)*in < 0x20)
            return NULL;
        if (*in != '\\') {
            *out++ = *in++;
        } else if (in[1] == 'u') {
            in += 2;
            if (!take_code(&in, &out))
                return NULL;
        } else {
            const char *which = in[1] ? strchr(escapes, in[1]) : NULL;

            if (!which)
                return NULL;
            *out++ = meanings[which - escapes];
            in += 2;
        }
    }
    *out = '\0';
    *at = in + 1;
    return begin;
}

static bool take_number(char **at, uint64_t *out)
{
    char *in = *at;
    uint64_t value = 0;

    if (strncmp(in, "true", 4) == 0 || strncmp(in, "false", 5) == 0) {
        *out = *in == 't';
        *at = in + (*in == 't' ? 4 : 5);
        return true;
    }
    if (*in < '0' || *in > '9')
        return false;
    for (; *in >= '0' && *in <= '9'; in++) {
        unsigned digit = (unsigned)(*in - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    *at = in;
    return true;
}

/* {"key":value,...} with values that are strings, whole numbers, true or false. */
static bool take_line(char *at, struct line *line)
{
    line->count = 0;
    if (*at != '{')
        return false;
    do {
        struct field *field = &line->fields[line->count];

        at++;
        *field = (struct field){0};
        field->key = take_string(&at);
        if (!field->key || *at++ != ':')
            return false;
        field->text = take_string(&at);
        if (!field->text && !take_number(&at, &field->number))
            return false;
        if (line->count + 1 < FIELDS_MAX)
            line->count++;
    } while (*at == ',');
    return at[0] == '}' && at[1] == '\0';
}

static const struct field *field_of(const struct line *line, const char *key)
{
    for (unsigned i = 0; i < line->count; i++)
        if (strcmp(line->fields[i].key, key) == 0)
            return &line->fields[i];
    return NULL;
}

/* Empty, or 0, where there is none. */
static const char *text_of(const struct line *line, const char *key)
{
    const struct field *field = field_of(line, key);

    return field && field->text ? field->text : "";
}

static uint64_t number_of(const struct line *line, const char *key)
{
    const struct field *field = field_of(line, key);

    return field && !field->text ? field->number : 0;
}

/* ---- what it says --------------------------------------------------------------------------- */

/* The list with room for one more; NULL: no memory. */
static void *grow(void *list, size_t count, size_t size)
{
    /* At each power of two there is as much room again. */
    if ((count & (count - 1)) != 0)
        return list;
    return realloc(list, (count ? count * 2 : 1) * size);
}

static bool add_interface(struct read_process *p, const struct line *line)
{
    struct read_interface *interface =
        grow(p->interfaces, p->interface_count, sizeof *p->interfaces);

    if (!interface)
        return false;
    p->interfaces = interface;
    interface += p->interface_count++;
    interface->index = (uint32_t)number_of(line, "index");
    interface->name = text_of(line, "name");
    for (unsigned i = 0; i < READ_COUNTERS; i++)
        interface->counters[i] = number_of(line, read_counter_names[i]);
    return true;
}

static bool add_endpoint(struct read_process *p, enum read_kind kind, const struct line *line)
{
    struct read_endpoint *e = grow(p->endpoints, p->endpoint_count, sizeof *p->endpoints);

    if (!e)
        return false;
    p->endpoints = e;
    e[p->endpoint_count++] = (struct read_endpoint){
        .kind = kind,
        .connecting = strcmp(text_of(line, "state"), "connecting") == 0,
        .index = (uint32_t)number_of(line, "index"),
        .adapter = (uint32_t)number_of(line, "adapter"),
        .local = text_of(line, "local"),
        .host_local = text_of(line, "host_local"),
        .foreign = kind == READ_CONNECTION ? text_of(line, "foreign") : NULL,
        .host_foreign = kind == READ_CONNECTION ? text_of(line, "host_foreign") : NULL,
    };
    return true;
}

static bool add(struct read_process *p, const struct line *line, bool *ended)
{
    const char *kind = text_of(line, "kind");

    if (strcmp(kind, "interface") == 0)
        return add_interface(p, line);
    if (strcmp(kind, "connection") == 0)
        return add_endpoint(p, READ_CONNECTION, line);
    if (strcmp(kind, "listener") == 0)
        return add_endpoint(p, READ_LISTENER, line);
    if (strcmp(kind, "shared endpoint") == 0)
        return add_endpoint(p, READ_SHARED, line);
    if (strcmp(kind, "end") == 0) {
        *ended = true;
        p->complete = number_of(line, "complete") == 1;
    }
    return true;
}

/* The line that everything begins with. */
static bool begin(struct read_process *p, const struct line *line, char *why, size_t size)
{
    uint64_t format = number_of(line, "format");

    if (strcmp(text_of(line, "kind"), "process") != 0 || format != ADAPTER_TELL_FORMAT) {
        snprintf(why, size, "answers in another format (have %llu, need %d)",
                 (unsigned long long)format, ADAPTER_TELL_FORMAT);
        return false;
    }
    p->pid = (uint32_t)number_of(line, "pid");
    p->program = text_of(line, "program");
    p->softndk = text_of(line, "softndk");
    return true;
}

bool read_answer(char *text, struct read_process *out, char *why, size_t size)
{
    bool ended = false, good = true;
    unsigned number = 0;
    char *next;

    *out = (struct read_process){0};
    why[0] = '\0';
    for (char *at = text; good && !ended && (next = strchr(at, '\n')) != NULL; at = next + 1) {
        struct line line;

        *next = '\0';
        number++;
        good = take_line(at, &line);
        if (!good)
            snprintf(why, size, "line %u of its answer cannot be read", number);
        else if (number == 1)
            good = begin(out, &line, why, size);
        else
            good = add(out, &line, &ended);
    }
    if (good && !ended) {
        snprintf(why, size, "its answer ends after %u lines, before its end", number);
        good = false;
    }
    if (!good && !why[0])
        snprintf(why, size, "no memory for its answer");
    if (!good)
        read_free(out);
    return good;
}

void read_free(struct read_process *process)
{
    free(process->interfaces);
    free(process->endpoints);
    *process = (struct read_process){0};
}
