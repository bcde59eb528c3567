// SPDX-License-Identifier: MIT
/* See tool_forms.h. No state. */
#include "tool_forms.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tool_args.h"

enum kind { SERVER_ADDR, SERVER_IF, CLIENT_ADDR, CLIENT_IF, TEST_TYPE, LOG_FILE, KINDS };

static const char *const names[KINDS] = {
    [SERVER_ADDR] = "-ServerAddr", [SERVER_IF] = "-ServerIf", [CLIENT_ADDR] = "-ClientAddr",
    [CLIENT_IF] = "-ClientIf",     [TEST_TYPE] = "-TestType", [LOG_FILE] = "-LogFilename",
};

static enum kind kind_of(const char *argument)
{
    int kind = 0;

    while (kind < KINDS && strcasecmp(argument, names[kind]) != 0)
        kind++;
    return (enum kind)kind;
}

/* "-S", "-C" where no value follows: letter is the capital. */
static bool is_role(char letter, int i, int argc, char **argv)
{
    const char *word = argv[i];

    return word[0] == '-' && (word[1] & ~0x20) == letter && word[2] == '\0' &&
           (i + 1 == argc || argv[i + 1][0] < '0' || argv[i + 1][0] > '9');
}

static bool take_address(const char *name, const char *text, bool with_port,
                         char out[SOFTNDK_ADDRESS_MAX], uint16_t *port)
{
    SOCKADDR_INET address;
    ULONG length;

    if (softndk_address_from_text(text, &address, &length) != STATUS_SUCCESS ||
        (!with_port && SS_PORT(&address) != 0)) {
        tool_usage_error("%s '%s': need an IPv4 or IPv6 address in numbers%s", name, text,
                         with_port ? ", ADDRESS:PORT or [ADDRESS]:PORT" : ", without a port");
        return false;
    }
    if (port)
        *port = RtlUshortByteSwap(SS_PORT(&address));
    SS_PORT(&address) = 0;
    softndk_address_to_text((const SOCKADDR *)&address, length, out, SOFTNDK_ADDRESS_MAX);
    return true;
}

static bool take_index(const char *name, const char *text, uint32_t *out)
{
    uint64_t number;

    if (!tool_number(text, 1, UINT32_MAX, &number)) {
        tool_usage_error("%s '%s': need an interface's index, 1 or more (ndkinfo shows them)", name,
                         text);
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

static bool take(enum kind kind, const char *text, struct tool_forms *out)
{
    switch (kind) {
    case SERVER_ADDR:
        return take_address(names[kind], text, true, out->server_address, &out->server_port);
    case CLIENT_ADDR:
        return take_address(names[kind], text, false, out->client_address, NULL);
    case SERVER_IF:
        return take_index(names[kind], text, &out->server_interface);
    case CLIENT_IF:
        return take_index(names[kind], text, &out->client_interface);
    case TEST_TYPE:
        out->test_type = text;
        return true;
    default:
        tool_usage_error("%s '%s': there is no log file here; redirect the output", names[kind],
                         text);
        return false;
    }
}

bool tool_forms_take(int *argc, char **argv, struct tool_forms *out)
{
    bool seen[KINDS] = {false};
    int left = 1;

    memset(out, 0, sizeof(*out));
    for (int i = 1; i < *argc; i++)
        out->used = out->used || kind_of(argv[i]) < LOG_FILE;
    for (int i = 1; out->used && i < *argc; i++) {
        enum kind kind = kind_of(argv[i]);

        if (is_role('S', i, *argc, argv)) {
            out->server = true;
        } else if (is_role('C', i, *argc, argv)) {
            out->client = true;
        } else if (kind == KINDS) {
            argv[left++] = argv[i];
        } else if (seen[kind] || i + 1 == *argc) {
            tool_usage_error("%s: %s", names[kind],
                             seen[kind] ? "is given twice" : "needs a value");
            return false;
        } else {
            seen[kind] = true;
            if (!take(kind, argv[++i], out))
                return false;
        }
    }
    if (out->used) {
        *argc = left;
        argv[left] = NULL;
    }
    return true;
}
