// SPDX-License-Identifier: MIT
/*
 * ndkstatus - explains NTSTATUS values as NDK uses them: what they mean, which functions return
 * them and how, and what usually causes them.
 *
 * A view of the status table (base/status.h) and nothing more; --markdown writes docs/statuses.md.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

/* Exit statuses: a value that no function uses is an answer too, yet scripts want to know. */
enum { EXIT_KNOWN = 0, EXIT_UNUSED = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: ndkstatus STATUS...          explain statuses: 0xC0000141, -1073741503, a name in\n"
    "                                    either case, with or without STATUS_\n"
    "       ndkstatus --reason CODE      explain a disconnect reason or provider error code\n"
    "       ndkstatus --list             all statuses\n"
    "       ndkstatus --functions [NAME] all functions, or what one of them returns; NAME is\n"
    "                                    NdkCreateCq or NDK_FN_CREATE_CQ, in either case\n"
    "       ndkstatus --markdown         everything, as docs/statuses.md\n"
    "       ndkstatus -h, --help\n"
    "\n"
    "inline: only as the return value. both: documented to come as the return value or through\n"
    "the callback. async-possible: listed for a call that may pend, so it may come either way.\n"
    "A * marks codes that NDKPI leaves to the provider and softndk chose.\n"
    "\n"
    "exit status: 0, 1 for a status that NDK does not use, 2 for wrong arguments\n";

static const char *severity_name(NTSTATUS status)
{
    static const char *const names[] = {"success", "information", "warning", "error"};

    return names[(ULONG)status >> 30];
}

/* "both", or "both*" for a code that is ours. */
static const char *how_text(const struct softndk_function_status *row, char text[32])
{
    snprintf(text, 32, "%s%s", softndk_status_how_name(row->how),
             row->source == SOFTNDK_STATUS_OURS ? "*" : "");
    return text;
}

/* "send, read", or "all" */
static const char *kinds_text(unsigned kinds, char text[96])
{
    static const char *const names[] = {"send", "receive", "bind",         "invalidate",
                                        "read", "write",   "fast-register"};
    size_t used = 0;

    if (kinds == NDK_WORK_ALL)
        return "all requests";
    text[0] = '\0';
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (kinds & (1u << i))
            used += (size_t)snprintf(text + used, 96 - used, "%s%s", used ? ", " : "", names[i]);
    }
    return text;
}

/* ---- answers on the terminal ---- */

static void print_users(NTSTATUS status)
{
    const struct softndk_function *f;
    const struct softndk_work_status *w;
    const char *heading = "  returned by:\n";
    char text[96];

    for (size_t i = 0; (f = softndk_function_at(i)) != NULL; i++) {
        const struct softndk_function_status *row = softndk_function_status(f, status);

        if (!row)
            continue;
        printf("%s    %-34s %-15s %s\n", heading, f->name, how_text(row, text), row->when);
        heading = "";
    }
    for (size_t i = 0; (w = softndk_work_status_at(i)) != NULL; i++) {
        if (w->status == status)
            printf("  as a work completion (%s):\n    %s\n", kinds_text(w->kinds, text), w->when);
    }
}

static int explain(NTSTATUS status)
{
    const char *name = softndk_status_name(status);
    const char *causes = softndk_status_causes(status);

    printf("%s 0x%08X (%d, %s)\n  %s\n", name ? name : "(no name known)", (unsigned)status,
           (int)status, severity_name(status), softndk_status_text(status));
    if (causes)
        printf("  usual causes: %s\n", causes);
    if (!softndk_status_is_used(status)) {
        if (name)
            puts("  NDK does not use it");
        return EXIT_UNUSED;
    }
    print_users(status);
    return EXIT_KNOWN;
}

static void list_statuses(void)
{
    NTSTATUS status;

    for (size_t i = 0; softndk_status_at(i, &status); i++)
        printf("0x%08X %-30s %s\n", (unsigned)status, softndk_status_name(status),
               softndk_status_text(status));
}

static void list_functions(void)
{
    const struct softndk_function *f;

    for (size_t i = 0; (f = softndk_function_at(i)) != NULL; i++)
        printf("%-6s %-34s %-18s %s\n", f->section, f->name, strchr(f->slot, ' ') ? "-" : f->slot,
               f->gist);
}

static void explain_function(const struct softndk_function *f)
{
    const struct softndk_function_status *row;
    enum softndk_status_how how;
    char text[32];

    printf("%s (%s): %s\n", f->name, f->type, f->gist);
    printf("  slot %s, IRQL %s, since %s, %s, NDKPI reference %s\n", f->slot,
           f->passive_only ? "= PASSIVE_LEVEL" : "<= DISPATCH_LEVEL", f->since,
           softndk_function_model_name(f->model), f->section);
    for (size_t i = 0; (row = softndk_function_status_at(f, i)) != NULL; i++)
        printf("  0x%08X %-30s %-15s %s\n", (unsigned)row->status, softndk_status_name(row->status),
               how_text(row, text), row->when);
    if (softndk_function_open_ended(f, &how))
        printf("  %-10s %-30s %-15s the list is open-ended\n", "", "any other",
               softndk_status_how_name(how));
}

/* ---- docs/statuses.md ---- */

static void markdown_statuses(void)
{
    NTSTATUS status;

    puts("## Statuses\n\n| Status | Value | Meaning | Usual causes | Returned by |\n"
         "|---|---|---|---|---|");
    for (size_t i = 0; softndk_status_at(i, &status); i++) {
        const char *causes = softndk_status_causes(status);
        const struct softndk_function *f;
        const struct softndk_work_status *w;
        const char *separator = "";
        size_t users = 0, functions = 0;

        printf("| `%s` | `0x%08X` | %s | %s | ", softndk_status_name(status), (unsigned)status,
               softndk_status_text(status), causes ? causes : "");
        for (size_t k = 0; (f = softndk_function_at(k)) != NULL; k++) {
            bool lists_any = softndk_function_status_at(f, 0) != NULL;

            functions += lists_any;
            users += lists_any && softndk_function_status(f, status) != NULL;
        }
        if (users && users == functions) {
            printf("every function that returns a status");
            separator = ", ";
        }
        for (size_t k = 0; users != functions && (f = softndk_function_at(k)) != NULL; k++) {
            if (softndk_function_status(f, status)) {
                printf("%s%s", separator, f->name);
                separator = ", ";
            }
        }
        for (size_t k = 0; (w = softndk_work_status_at(k)) != NULL; k++) {
            if (w->status == status)
                printf("%swork completions", separator);
        }
        puts(" |");
    }
}

static void markdown_function(const struct softndk_function *f)
{
    const struct softndk_function_status *row;
    enum softndk_status_how how;
    char text[32];

    printf("\n### %s\n\n`%s` %s. Slot %s, IRQL %s, since %s, %s. NDKPI reference %s.\n", f->name,
           f->type, f->gist, f->slot, f->passive_only ? "= PASSIVE_LEVEL" : "<= DISPATCH_LEVEL",
           f->since, softndk_function_model_name(f->model), f->section);
    if (!softndk_function_status_at(f, 0))
        return;
    puts("\n| Status | How | When |\n|---|---|---|");
    for (size_t i = 0; (row = softndk_function_status_at(f, i)) != NULL; i++)
        printf("| `%s` | %s | %s |\n", softndk_status_name(row->status), how_text(row, text),
               row->when);
    if (softndk_function_open_ended(f, &how))
        printf("| any other | %s | the list is open-ended |\n", softndk_status_how_name(how));
}

static void markdown(void)
{
    const struct softndk_function *f;
    const struct softndk_work_status *w;
    char text[96];

    puts(
        "# Statuses of the NDK interface\n\n"
        "Written by `ndkstatus --markdown`; do not edit, the source is `src/base/status_table.def`."
        "\n\nHow a status comes: *inline* as the return value only; *both* is documented to come "
        "as the return\nvalue or through the completion callback; *async-possible* is listed for "
        "a call that may pend, so it\nmay come either way. A `*` marks a code that NDKPI leaves "
        "to the provider and softndk chose.\n`STATUS_PENDING` is a success code; "
        "`STATUS_BUFFER_OVERFLOW`, `STATUS_NO_MORE_ENTRIES` and\n`STATUS_DEVICE_BUSY` are "
        "warnings, for which neither `NT_SUCCESS` nor `NT_ERROR` holds.\n");
    markdown_statuses();
    puts("\n## Work completions\n\nThe `Status` of an `NDK_RESULT`.\n\n"
         "| Status | Requests | When |\n|---|---|---|");
    for (size_t i = 0; (w = softndk_work_status_at(i)) != NULL; i++)
        printf("| `%s` | %s | %s |\n", softndk_status_name(w->status), kinds_text(w->kinds, text),
               w->when);
    puts("\n## Functions");
    for (size_t i = 0; (f = softndk_function_at(i)) != NULL; i++)
        markdown_function(f);
}

/* ---- arguments ---- */

/* Reads a 32-bit number: 0x and hexadecimal digits, or decimal, also negative. Eight hexadecimal
 * digits that are no decimal number are taken as well, as debuggers print statuses so. */
static bool number_from_text(const char *text, ULONG *number)
{
    bool hexadecimal = strncasecmp(text, "0x", 2) == 0;
    const char *digits = hexadecimal ? text + 2 : text + (text[0] == '-');
    char *end;
    long long value;

    if (!hexadecimal && strlen(text) == 8 && strspn(text, "0123456789abcdefABCDEF") == 8 &&
        strspn(text, "0123456789") < 8) {
        hexadecimal = true;
    }
    if (!isxdigit((unsigned char)digits[0]))
        return false;
    errno = 0;
    value = strtoll(text, &end, hexadecimal ? 16 : 10);
    if (*end || errno || value < -0x80000000ll || value > 0xffffffffll)
        return false;
    *number = (ULONG)value;
    return true;
}

static int fail(const char *what, const char *argument)
{
    fprintf(stderr, "ndkstatus: %s: %s (try ndkstatus --help)\n", argument, what);
    return EXIT_USAGE;
}

static int explain_reason(const char *argument)
{
    char text[256];
    ULONG code;

    if (!number_from_text(argument, &code))
        return fail("not a 32-bit number", argument);
    softndk_reason_text(code, text, sizeof(text));
    printf("0x%08X %s\n", code, text);
    return EXIT_KNOWN;
}

static int explain_argument(const char *argument)
{
    NTSTATUS status;
    ULONG number;

    if (softndk_status_by_name(argument, &status))
        return explain(status);
    if (number_from_text(argument, &number))
        return explain((NTSTATUS)number);
    return fail("neither the name of a status nor a 32-bit number", argument);
}

/* An option with its operand, if it has one; -1 when the first argument is no option. */
static int run_option(int argc, char **argv)
{
    const struct softndk_function *f;
    const char *option = argv[1];

    if (strcmp(option, "--functions") == 0 && argc == 3) {
        f = softndk_function_by_name(argv[2]);
        if (!f)
            return fail("no such function", argv[2]);
        explain_function(f);
    } else if (strcmp(option, "--reason") == 0) {
        return argc == 3 ? explain_reason(argv[2]) : fail("needs one code", option);
    } else if (option[0] != '-' || isdigit((unsigned char)option[1])) {
        return -1;
    } else if (argc != 2) {
        return fail("unexpected argument", argv[2]);
    } else if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
        fputs(usage, stdout);
    } else if (strcmp(option, "--list") == 0) {
        list_statuses();
    } else if (strcmp(option, "--functions") == 0) {
        list_functions();
    } else if (strcmp(option, "--markdown") == 0) {
        markdown();
    } else {
        return fail("unknown option", option);
    }
    return EXIT_KNOWN;
}

int main(int argc, char **argv)
{
    int worst;

    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    worst = run_option(argc, argv);
    if (worst < 0) {
        worst = EXIT_KNOWN;
        for (int i = 1; i < argc; i++) {
            int result = explain_argument(argv[i]);

            if (result > worst)
                worst = result;
        }
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("ndkstatus: writing");
        return EXIT_UNUSED;
    }
    return worst;
}
