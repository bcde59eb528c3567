// SPDX-License-Identifier: MIT
/*
 * ndkstatus - explains NTSTATUS values as NDK uses them: what they mean, which functions return
 * them and how, and what usually causes them.
 *
 * A view of the status table (base/status.h) and nothing more; docs/statuses.md is made of what
 * --json prints (tests/check-status-tests.py).
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
    "       ndkstatus --json             everything, for programs\n"
    "       ndkstatus -h, --help\n"
    "       ndkstatus --version\n"
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

static const char *const kind_names[] = {"send", "receive", "bind",         "invalidate",
                                         "read", "write",   "fast-register"};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

/* "send, read", or "all requests" */
static const char *kinds_text(unsigned kinds, char text[96])
{
    size_t used = 0;

    if (kinds == NDK_WORK_ALL)
        return "all requests";
    text[0] = '\0';
    for (unsigned i = 0; i < KINDS; i++) {
        if (kinds & (1u << i))
            used +=
                (size_t)snprintf(text + used, 96 - used, "%s%s", used ? ", " : "", kind_names[i]);
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

/* ---- for programs ---- */

/* "key": "text", with what JSON wants escaped. The texts of the table are ASCII. */
static void json_text(const char *key, const char *text, const char *end)
{
    printf("\"%s\": \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    printf("\"%s", end);
}

static void json_statuses(void)
{
    NTSTATUS status;

    for (size_t i = 0; softndk_status_at(i, &status); i++) {
        const char *causes = softndk_status_causes(status);

        printf("%s\n    {", i ? "," : "");
        json_text("name", softndk_status_name(status), ", ");
        printf("\"value\": %u, ", (unsigned)status);
        json_text("meaning", softndk_status_text(status), ", ");
        json_text("causes", causes ? causes : "", "}");
    }
}

static void json_completions(void)
{
    const struct softndk_work_status *w;

    for (size_t i = 0; (w = softndk_work_status_at(i)) != NULL; i++) {
        const char *separator = "";

        printf("%s\n    {", i ? "," : "");
        json_text("status", softndk_status_name(w->status), ", \"requests\": [");
        for (unsigned k = 0; k < KINDS; k++) {
            if (w->kinds & (1u << k)) {
                printf("%s\"%s\"", separator, kind_names[k]);
                separator = ", ";
            }
        }
        printf("], ");
        json_text("when", w->when, "}");
    }
}

static void json_function(const struct softndk_function *f)
{
    const struct softndk_function_status *row;
    enum softndk_status_how how;

    json_text("name", f->name, ", ");
    json_text("type", f->type, ",\n     ");
    json_text("slot", f->slot, ", ");
    json_text("section", f->section, ", ");
    json_text("since", f->since, ",\n     ");
    json_text("gist", f->gist, ",\n     ");
    json_text("model", softndk_function_model_name(f->model), ", ");
    printf("\"passive_only\": %s, ", f->passive_only ? "true" : "false");
    if (softndk_function_open_ended(f, &how))
        json_text("any_other", softndk_status_how_name(how), ",\n     ");
    printf("\"statuses\": [");
    for (size_t i = 0; (row = softndk_function_status_at(f, i)) != NULL; i++) {
        printf("%s\n      {", i ? "," : "");
        json_text("status", softndk_status_name(row->status), ", ");
        json_text("how", softndk_status_how_name(row->how), ", ");
        printf("\"ours\": %s, ", row->source == SOFTNDK_STATUS_OURS ? "true" : "false");
        json_text("when", row->when, "}");
    }
    printf("]");
}

static void json(void)
{
    const struct softndk_function *f;

    printf("{\"statuses\": [");
    json_statuses();
    printf("],\n \"completions\": [");
    json_completions();
    printf("],\n \"functions\": [");
    for (size_t i = 0; (f = softndk_function_at(i)) != NULL; i++) {
        printf("%s\n    {", i ? "," : "");
        json_function(f);
        printf("}");
    }
    puts("]}");
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
    } else if (strcmp(option, "--version") == 0) {
        printf("ndkstatus %s\n", softndk_version_string());
    } else if (strcmp(option, "--list") == 0) {
        list_statuses();
    } else if (strcmp(option, "--functions") == 0) {
        list_functions();
    } else if (strcmp(option, "--json") == 0) {
        json();
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
