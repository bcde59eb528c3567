// SPDX-License-Identifier: MIT
/* See modes.h. */
#include "modes.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "os/os.h"

const char *mode = "never";

void mode_set(const char *text)
{
    mode = text;
    if (softndk_set_pend(text) != STATUS_SUCCESS)
        test_fail("no completion mode: %s", text);
}

NTSTATUS mode_answer(struct wait *w, NTSTATUS returned)
{
    NTSTATUS status = wait_end(w, returned);

    if (strcmp(mode, "never") == 0 && returned == STATUS_PENDING)
        test_fail("an answer that was known at once (%s) did not come inline",
                  softndk_status_name(status));
    if ((strcmp(mode, "always") == 0 || strcmp(mode, "early") == 0) && returned != STATUS_PENDING)
        test_fail("the answer %s came inline in mode %s", softndk_status_name(status), mode);
    return status;
}

NTSTATUS mode_refusal(struct wait *w, NTSTATUS returned)
{
    NTSTATUS status = mode_answer(w, returned);

    assert_null(w->object);
    return status;
}

void fail_next(const char *call, NTSTATUS status)
{
    char rule[96];

    snprintf(rule, sizeof rule, "%s:1:0x%08x", call, (unsigned)status);
    assert_int_equal(softndk_set_fail(rule), STATUS_SUCCESS);
}

void no_memory_for(unsigned nth)
{
    char rule[32];

    snprintf(rule, sizeof rule, "memory:%u", nth);
    assert_int_equal(softndk_set_fail(rule), STATUS_SUCCESS);
}

void expect_reason(const NDK_OBJECT_HEADER *object, const char *part)
{
    char text[512];

    softndk_reason(object, text, sizeof text);
    if (!strstr(text, part))
        test_fail("the reason \"%s\" does not speak of \"%s\"", text, part);
}

static char addresses[2][32];

static const char *address_of_this_run(unsigned which)
{
    uint8_t r[3];

    if (!addresses[0][0]) {
        os_random(r, sizeof r);
        for (unsigned i = 0; i < 2; i++)
            snprintf(addresses[i], sizeof addresses[i], "127.%u.%u.%u", 1 + r[0] % 250u, r[1],
                     1 + r[2] % 250u + i);
    }
    return addresses[which];
}

const char *own_address(void)
{
    return address_of_this_run(0);
}

const char *other_address(void)
{
    return address_of_this_run(1);
}

SOCKADDR_INET inet_address(const char *text, unsigned port)
{
    SOCKADDR_INET address;
    ULONG length;

    assert_int_equal(softndk_address_from_text(text, &address, &length), STATUS_SUCCESS);
    address.Ipv4.sin_port = RtlUshortByteSwap((USHORT)port);
    return address;
}

unsigned inet_port(const SOCKADDR_INET *address)
{
    return RtlUshortByteSwap(address->Ipv4.sin_port);
}
