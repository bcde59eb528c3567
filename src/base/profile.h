// SPDX-License-Identifier: MIT
/*
 * The reader of profiles: texts that give many options their values at once, a line each.
 *
 *     # a comment, also behind a setting
 *     frmr_pages = 16
 *     ndkpi = 2.1
 *
 * Keys and values are those of base/options.h, each key at most once; lines are those of
 * base/config.h, without sections and quotes. Pure: the text comes from the caller, and nothing is
 * changed unless all of it is good. Which profiles there are, and where, is provider/settings.h.
 */
#ifndef SOFTNDK_BASE_PROFILE_H
#define SOFTNDK_BASE_PROFILE_H

#include "base/options.h"

#define PROFILE_NAME_MAX 32
#define PROFILE_TEXT_MAX 65536 /* octets */
#define PROFILE_LINE_MAX 400   /* octets without its end */

/* Letters, digits, '-', '_', '.', not beginning with a dot; 1 to PROFILE_NAME_MAX of them. */
bool profile_name_is_good(const char *name, size_t length);

/*
 * Applies a profile on top of *out. where: what messages call the text, the name of its file. False
 * with "WHERE:LINE: what is wrong (have, need)" in error[size]; *out is then unchanged.
 */
bool profile_apply(struct options *out, const char *where, const char *text, size_t length,
                   char *error, size_t size);

/* What the profile says of itself: its first comment that is no licence line, without its mark, cut
 * off at size; empty if it has none. */
void profile_about(const char *text, size_t length, char *about, size_t size);

#endif
