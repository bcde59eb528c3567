// SPDX-License-Identifier: MIT
/* The door to softndk: the only file of the kit that sees softndk.h. */
#include <softndk.h>

#include "kit_door.h"
#include "kit_internal.h"

static NTSTATUS door_open(const SOCKADDR_INET *local, ULONG local_length, const char *options,
                          NDK_VERSION version, NDK_ADAPTER **out, char *why, SIZE_T why_size)
{
    char selector[SOFTNDK_ADDRESS_MAX];
    NTSTATUS status;

    softndk_address_to_text((const SOCKADDR *)local, local_length, selector, sizeof selector);
    status = softndk_open_adapter(selector, options, version, out);
    if (status != STATUS_SUCCESS)
        softndk_open_error(why, why_size);
    return status;
}

static NTSTATUS door_address(const char *text, SOCKADDR_INET *out, ULONG *length)
{
    return softndk_address_from_text(text, out, length);
}

static VOID door_address_text(const SOCKADDR_INET *address, char *text, SIZE_T size)
{
    softndk_address_to_text((const SOCKADDR *)address, kit_address_length(address), text, size);
}

static NTSTATUS door_local_for(const SOCKADDR_INET *peer, SOCKADDR_INET *out, ULONG *length)
{
    char text[SOFTNDK_ADDRESS_MAX], selector[SOFTNDK_NAME_MAX], source[SOFTNDK_ADDRESS_MAX];
    NTSTATUS status;

    softndk_address_to_text((const SOCKADDR *)peer, kit_address_length(peer), text, sizeof text);
    status = softndk_adapter_for_route(text, selector, sizeof selector, source, sizeof source);
    if (status != STATUS_SUCCESS)
        return status;
    return softndk_address_from_text(source, out, length);
}

static VOID door_reason(const NDK_OBJECT_HEADER *object, char *text, SIZE_T size)
{
    softndk_reason(object, text, size);
}

static NTSTATUS door_answer(const char *mode)
{
    return softndk_set_pend(mode ? mode : "never");
}

static NTSTATUS door_fail(const char *function, NTSTATUS status)
{
    char rule[128];

    if (!function)
        return softndk_set_fail(NULL);
    kit_print_to(rule, sizeof rule, "%s:1:0x%08x", function, (unsigned)status);
    return softndk_set_fail(rule);
}

static ULONG door_findings(VOID)
{
    return softndk_finding_count();
}

static BOOLEAN door_exact(const char *options)
{
    return kit_glob("*completion=placed*", options);
}

const struct kit_door kit_door = {
    .name = "softndk",
    .open = door_open,
    .close = softndk_close_adapter,
    .address = door_address,
    .address_text = door_address_text,
    .direct = TRUE,
    .version = softndk_version_string,
    .local_for = door_local_for,
    .reason = door_reason,
    .answer = door_answer,
    .fail = door_fail,
    .findings = door_findings,
    .exact = door_exact,
};
