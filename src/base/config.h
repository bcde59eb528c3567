// SPDX-License-Identifier: MIT
/*
 * The reader of texts of settings, a line each, perhaps under section lines:
 *
 *     # a comment, also behind a setting
 *     [section]
 *     key = value
 *     name = "with # and \" inside"
 *
 * Profiles (base/profile.h) and the configuration (ndis/config.h) are read with it; what sections
 * and keys mean is theirs. Lines end with LF or CR LF; the last one need not. Settings are of
 * printable ASCII; comments may hold anything but NUL. A reader that knows quotes passes over #, [
 * and = between them, and takes UTF-8 there. One that knows sections passes over the mark that
 * editors of Windows put before UTF-8.
 *
 * Pure: the text comes from the caller, and the first fault ends the reading. No lock.
 */
#ifndef SOFTNDK_BASE_CONFIG_H
#define SOFTNDK_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* Not terminated; without blanks around. */
struct config_word {
    const char *text;
    size_t length;
};

struct config_reader {
    const char *where; /* what messages call the text */
    size_t text_max;   /* octets */
    size_t line_max;   /* octets without the end of the line */
    bool quotes;
    /* False, with a sentence left by config_wrong(), ends the reading. No section: a line that
     * begins with [ is a setting like any other. */
    bool (*section)(struct config_reader *reader, struct config_word name);
    bool (*setting)(struct config_reader *reader, struct config_word key, struct config_word value);
    void *context;
    unsigned line; /* the present one; afterwards the last one */
    char *error;   /* receives "WHERE:LINE: what is wrong (have, need)" */
    size_t size;
};

/* Reads all of it; false: error holds a sentence. */
bool config_read(struct config_reader *reader, const char *text, size_t length);

/* Leaves a sentence for the present line; false. */
bool config_wrong(struct config_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A value as text: what stands between its quotes, with \" and \\ resolved, or all of it when it
 * has none. False with a sentence: something behind the quotes, or no room. */
bool config_text(struct config_reader *reader, struct config_word value, char *out, size_t size);

/* Splits at the first `at` outside quotes; false when there is none. */
bool config_split(struct config_word whole, char at, struct config_word *left,
                  struct config_word *right);

bool config_word_is(struct config_word word, const char *text);

#endif
