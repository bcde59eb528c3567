// SPDX-License-Identifier: MIT
/*
 * A text that grows, for lines of JSON. It has a limit; what does not fit, or for which there is no
 * memory, is left out together with all that follows, and `full` tells so.
 */
#ifndef SOFTNDK_STAT_TEXT_H
#define SOFTNDK_STAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define STAT_TEXT_MAX (16u << 20) /* octets */

struct stat_text {
    char *at; /* to be freed; NULL: empty */
    size_t length, room;
    size_t limit; /* octets; 0: STAT_TEXT_MAX */
    bool full;
};

static inline size_t stat_text_limit(const struct stat_text *text)
{
    return text->limit ? text->limit : STAT_TEXT_MAX;
}

void stat_text_add(struct stat_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A string with its quotes: escaped, and U+FFFD for what is no UTF-8. */
void stat_text_string(struct stat_text *text, const char *string);
/* Cuts it back to a length it had, and opens it again. */
void stat_text_cut(struct stat_text *text, size_t length);

#endif
