// SPDX-License-Identifier: MIT
/*
 * The direct door: see softndk.h. Thin: it finds the interface and opens by its index, as the WSK
 * door does (ndis/registry.h), with options. State: one line of text a thread, why its last call
 * failed. No lock.
 */
#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn/reason_text.h"
#include "base/options.h"
#include "base/red.h"
#include "ndis/interfaces.h"
#include "ndis/registry.h"
#include "nt/nt.h"
#include "os/os_sync.h"
#include "provider/adapter.h"
#include "provider/address.h"
#include "provider/hooks.h"
#include "provider/object.h"
#include "provider/settings.h"
#include "provider/sockaddr.h"

#define INTERFACES_MAX 256

_Static_assert(SOFTNDK_NAME_MAX == OS_IF_NAME_MAX, "interface names fit");
_Static_assert(SOFTNDK_ADDRESS_MAX >= OS_ADDR_TEXT_MAX, "addresses fit");
_Static_assert(SOFTNDK_ADDRESSES_MAX == OS_IF_ADDR_MAX, "all addresses fit");

#define LAST_ERROR_MAX 1024 /* paths may stand in it */

NTSTATUS api_failed(NTSTATUS status, const char *format, ...)
{
    char *last_error = os_thread_memory(OS_THREAD_ERROR, LAST_ERROR_MAX);
    va_list ap;

    if (!last_error)
        return status;
    va_start(ap, format);
    vsnprintf(last_error, LAST_ERROR_MAX, format, ap);
    va_end(ap);
    if (RED("api-no-sentence"))
        last_error[0] = '\0';
    return status;
}

void api_begin(void)
{
    char *last_error = os_thread_memory(OS_THREAD_ERROR, 0);

    if (last_error)
        last_error[0] = '\0';
}

/* Text to the caller; the length of the whole. */
static size_t answer(const char *from, char *text, size_t size)
{
    if (size)
        snprintf(text, size, "%s", from);
    return strlen(from);
}

const char *softndk_version_string(void)
{
    return SOFTNDK_VERSION;
}

size_t softndk_open_error(char *text, size_t size)
{
    const char *last_error = os_thread_memory(OS_THREAD_ERROR, 0);

    return answer(last_error ? last_error : "", text, size);
}

/* ---- interfaces ---- */

/* All interfaces, to be freed; *count of them. NULL: the error is left. */
static struct os_interface *interfaces(unsigned *count, NTSTATUS *status)
{
    struct os_interface *list = calloc(INTERFACES_MAX, sizeof *list);
    int n = list ? interfaces_list(list, INTERFACES_MAX) : -ENOMEM;
    char text[1024];

    if (n == -EINVAL && !interfaces_ready(text, sizeof text)) {
        free(list);
        *status = api_failed(STATUS_INVALID_PARAMETER, "%s", text);
        return NULL;
    }
    if (n < 0) {
        free(list);
        *status =
            api_failed(STATUS_INSUFFICIENT_RESOURCES, "cannot list the interfaces (error %d)", -n);
        return NULL;
    }
    *count = n > INTERFACES_MAX ? INTERFACES_MAX : (unsigned)n;
    return list;
}

/* "12" or "if12". */
static bool selector_index(const char *text, uint32_t *index)
{
    unsigned long long number;
    char *end;

    if (strncmp(text, "if", 2) == 0)
        text += 2;
    if (text[0] < '0' || text[0] > '9')
        return false;
    number = strtoull(text, &end, 10);
    if (*end || number > UINT32_MAX)
        return false;
    *index = (uint32_t)number;
    return true;
}

static const struct os_interface *find_address(const struct os_interface *list, unsigned count,
                                               const struct os_addr *address)
{
    for (unsigned i = 0; i < count; i++)
        if (address_is_of(&list[i], address))
            return &list[i];
    return NULL;
}

static const struct os_interface *find_selected(const struct os_interface *list, unsigned count,
                                                const char *selector)
{
    struct os_addr address;
    uint32_t index;

    if (!selector || !*selector) {
        for (unsigned i = 0; i < count; i++)
            if (list[i].up)
                return &list[i];
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        if (strcmp(list[i].name, selector) == 0)
            return &list[i];
    if (selector_index(selector, &index)) {
        for (unsigned i = 0; i < count; i++)
            if (list[i].index == index)
                return &list[i];
        return NULL;
    }
    if (os_addr_parse(selector, &address) < 0)
        return NULL;
    return find_address(list, count, &address);
}

/* ---- adapters ---- */

static NTSTATUS no_interface(const char *selector)
{
    char text[OS_ADDR_TEXT_MAX];
    struct os_addr host, ndk;

    if (selector && os_addr_parse(selector, &host) == 0 && address_map_ndk(&host, &ndk))
        return api_failed(STATUS_NOT_FOUND,
                          "no interface for \"%s\": it is the host's address of %s (need that)",
                          selector, os_addr_text(&ndk, false, text));
    return api_failed(STATUS_NOT_FOUND,
                      "no interface for \"%s\" (need a name, an address of this host, or an index)",
                      selector && *selector ? selector : "the first that is up");
}

/* The index that the selector means; a provider may serve one that is no interface of the list. */
static NTSTATUS select_index(const char *selector, uint32_t *index)
{
    NTSTATUS status = STATUS_SUCCESS;
    const struct os_interface *interface;
    struct os_interface *list;
    unsigned count;

    list = interfaces(&count, &status);
    if (!list)
        return status;
    interface = find_selected(list, count, selector);
    if (interface)
        *index = interface->index;
    else if (!selector || !selector_index(selector, index) || !ndis_adapter_known(*index))
        status = no_interface(selector);
    free(list);
    return status;
}

NTSTATUS softndk_open_adapter(const char *selector, const char *options, NDK_VERSION version,
                              NDK_ADAPTER **out)
{
    NTSTATUS status;
    uint32_t index = 0;
    char text[1024] = "";

    api_begin();
    if (!out)
        return api_failed(STATUS_INVALID_PARAMETER, "no place for the adapter: out is NULL");
    if (hooks_environment_error())
        return api_failed(STATUS_INVALID_PARAMETER, "%s", hooks_environment_error());
    status = select_index(selector, &index);
    if (status != STATUS_SUCCESS)
        return status;
    status = ndis_open_adapter_with(index, version, options, out, text, sizeof text);
    if (status != STATUS_SUCCESS)
        (void)api_failed(status, "%s", text);
    return status;
}

void softndk_close_adapter(NDK_ADAPTER *adapter)
{
    if (adapter)
        ndis_close_adapter(adapter);
}

NTSTATUS softndk_adapter_list(struct softndk_adapter *list, ULONG max, ULONG *count)
{
    struct os_interface *all;
    NTSTATUS status = STATUS_SUCCESS;
    unsigned n;

    api_begin();
    if (!count || (max && !list))
        return api_failed(STATUS_INVALID_PARAMETER, "no place for the list or its count");
    all = interfaces(&n, &status);
    if (!all)
        return status;
    for (unsigned i = 0; i < n && i < max; i++) {
        struct softndk_adapter *to = &list[i];

        memset(to, 0, sizeof *to);
        snprintf(to->name, sizeof to->name, "%s", all[i].name);
        to->index = all[i].index;
        to->mtu = all[i].mtu;
        to->up = all[i].up;
        to->loopback = all[i].loopback;
        to->address_count = all[i].addr_count;
        interfaces_host(&all[i], to->host);
        for (unsigned k = 0; k < all[i].addr_count; k++) {
            struct os_addr host = all[i].addr[k];

            os_addr_text(&host, false, to->addresses[k]);
            (void)address_map_host(&all[i].addr[k], &host);
            os_addr_text(&host, false, to->host_addresses[k]);
        }
    }
    free(all);
    *count = n;
    return status;
}

NTSTATUS softndk_adapter_for_route(const char *peer, char *selector, size_t selector_size,
                                   char *source, size_t source_size)
{
    const struct os_interface *interface;
    struct os_interface *list;
    struct os_addr to, from = {0};
    NTSTATUS status = STATUS_SUCCESS;
    char text[OS_ADDR_TEXT_MAX];
    unsigned count;
    int rc;

    api_begin();
    if (!peer || os_addr_parse(peer, &to) < 0)
        return api_failed(STATUS_INVALID_PARAMETER, "\"%s\" is not an address", peer ? peer : "");
    list = interfaces(&count, &status);
    if (!list)
        return status;
    interface = interfaces_route(list, count, &to, &from, &rc);
    os_addr_text(&from, false, text);
    if (rc < 0)
        status = api_failed(STATUS_NETWORK_UNREACHABLE, "no route to %s (error %d)",
                            os_addr_text(&to, false, text), -rc);
    else if (!interface)
        status = api_failed(STATUS_NOT_FOUND, "no interface has the address %s", text);
    else if (answer(interface->name, selector, selector_size) >= selector_size ||
             (source && answer(text, source, source_size) >= source_size))
        status = api_failed(STATUS_BUFFER_TOO_SMALL, "no room for \"%s\" or \"%s\"",
                            interface->name, text);
    free(list);
    return status;
}

/* ---- addresses ---- */

NTSTATUS softndk_address_from_text(const char *text, SOCKADDR_INET *out, ULONG *length)
{
    struct os_addr address;

    if (!text || !out || !length || os_addr_parse(text, &address) < 0)
        return STATUS_INVALID_PARAMETER;
    memset(out, 0, sizeof *out);
    *length = sizeof *out;
    return sockaddr_put(&address, AF_INET6, (PSOCKADDR)(void *)out, length);
}

size_t softndk_address_to_text(const SOCKADDR *address, ULONG length, char *text, size_t size)
{
    char whole[OS_ADDR_TEXT_MAX];
    struct os_addr parsed;

    if (!sockaddr_get(address, length, &parsed, NULL))
        return answer("?", text, size);
    return answer(os_addr_text(&parsed, parsed.port != 0, whole), text, size);
}

/* ---- reasons, steering ---- */

size_t softndk_reason_text(ULONG code, char *text, size_t size)
{
    return reason_text(code, text, size);
}

size_t softndk_reason(const NDK_OBJECT_HEADER *header, char *text, size_t size)
{
    struct object *object = (struct object *)(void *)(ULONG_PTR)header;
    char whole[512];

    if (!header)
        return answer("", text, size);
    object_reason(object, whole, sizeof whole);
    return answer(whole, text, size);
}

NTSTATUS softndk_set_pend(const char *mode)
{
    return pend_set(mode) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

NTSTATUS softndk_set_fail(const char *rules)
{
    return fail_set(rules) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

ULONG softndk_finding_count(void)
{
    return nt_finding_count();
}

struct asking {
    const NDK_ADAPTER *adapter;
    const struct option_info *info;
    char value[OPTION_TEXT_MAX];
};

static void ask_option(struct adapter *adapter, void *context)
{
    struct asking *asking = context;
    char room[OPTION_TEXT_MAX];
    uint32_t value;

    if ((const void *)adapter != (const void *)asking->adapter)
        return;
    memcpy(&value, (const char *)&adapter->options + asking->info->offset, sizeof value);
    snprintf(asking->value, sizeof asking->value, "%s", option_text(asking->info, value, room));
}

size_t softndk_adapter_option(const NDK_ADAPTER *adapter, const char *name, char *text, size_t size)
{
    struct asking asking = {.adapter = adapter};

    asking.info = name ? option_find(name, strlen(name)) : NULL;
    if (asking.info)
        adapter_walk(ask_option, &asking);
    return answer(asking.value, text, size);
}

/* "0..3" or "local|placed|acked". */
static void option_range(const struct option_info *info, char *text, size_t size)
{
    size_t used = 0;

    if (!info->words) {
        snprintf(text, size, "%u..%u", info->minimum, info->maximum);
        return;
    }
    for (uint32_t i = 0; i <= info->maximum && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "|" : "", info->words[i]);
}

size_t softndk_options_describe(char *text, size_t size)
{
    size_t count, used = 0;
    const struct option_info *table = options_table(&count);

    if (size)
        text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char range[64], line[400], room[OPTION_TEXT_MAX];
        int n;

        option_range(&table[i], range, sizeof range);
        n = snprintf(line, sizeof line, "%-24s %10s  %-28s %-12s %s\n", table[i].name,
                     option_text(&table[i], table[i].standard, room), range, table[i].unit,
                     table[i].help);
        if (used < size)
            snprintf(text + used, size - used, "%s", line);
        used += (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    }
    return used;
}

struct describing {
    char *text;
    size_t size, used;
};

static void describe_profile(void *context, const char *name, const char *about, const char *path)
{
    struct describing *d = context;
    char line[1500];
    int n = snprintf(line, sizeof line, "%-16s %s\n%-16s %s\n", name, about, "",
                     path ? path : "compiled in");

    if (d->used < d->size)
        snprintf(d->text + d->used, d->size - d->used, "%s", line);
    d->used += (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
}

size_t softndk_profiles_describe(char *text, size_t size)
{
    struct describing d = {text, size, 0};

    if (size)
        text[0] = '\0';
    settings_profiles(describe_profile, &d);
    return d.used;
}

static void describe_line(void *context, const char *line)
{
    struct describing *d = context;

    if (d->used < d->size)
        snprintf(d->text + d->used, d->size - d->used, "%s\n", line);
    d->used += strlen(line) + 1;
}

size_t softndk_config_describe(char *text, size_t size)
{
    struct describing d = {text, size, 0};
    char error[1024];

    if (size)
        text[0] = '\0';
    api_begin();
    if (!interfaces_ready(error, sizeof error)) {
        api_failed(STATUS_INVALID_PARAMETER, "%s", error);
        return 0;
    }
    interfaces_tell(describe_line, &d);
    return d.used;
}
