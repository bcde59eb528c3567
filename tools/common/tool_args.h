// SPDX-License-Identifier: MIT
/*
 * Arguments of the programs: numbers read whole, and the sentence of a bad argument.
 */
#ifndef SOFTNDK_TOOL_ARGS_H
#define SOFTNDK_TOOL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of all programs. */
enum { TOOL_GOOD = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* The name that begins every message on stderr; main() sets it first. */
extern const char *tool_name;

/* Reads decimal digits and nothing else; false when text is anything else or out of range. */
bool tool_number(const char *text, uint64_t lowest, uint64_t highest, uint64_t *out);

/* "NAME: what" on stderr, with a hint at --help. Returns TOOL_USAGE. */
int tool_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What getopt_long(), called with ':' first in its letters, found wrong: in words. The letter is
 * what it returned, ':' or '?'. Returns TOOL_USAGE. */
int tool_option_error(int letter, char **argv);

/* "NAME: what" on stderr in one piece. */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the end of main(): TOOL_FAILED when stdout could not be written, otherwise result. */
int tool_finish(int result);

#endif
