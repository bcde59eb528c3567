// SPDX-License-Identifier: MIT
/*
 * ndkinfo - what the NDK adapters of this host can do: interface, addresses, and every capability
 * of NDK_ADAPTER_INFO, as lines "Name: value" or as JSON.
 *
 * An NDK consumer like any other. Each fact is told once, by tell_...(), in the form asked for.
 */
#include <softndk.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "common/tool_ndk.h"

static const char usage[] =
    "usage: ndkinfo [--json] [--profile NAME] [ADAPTER...]\n"
    "                                      what adapters can do; without ADAPTER all interfaces\n"
    "                                      that are up\n"
    "       ndkinfo --config               the configuration in force, with the line that says it\n"
    "       ndkinfo --options              the options of SOFTNDK_OPTIONS: name, default, range\n"
    "       ndkinfo --profiles             the profiles that can be chosen: name, file\n"
    "       ndkinfo -h, --help\n"
    "       ndkinfo --version\n"
    "\n"
    "ADAPTER is an interface's name or alias (eth0), one of its addresses (127.0.0.1,\n"
    "fe80::1%eth0) or its index (2, if2). Lines are \"Name: value\"; an empty line stands between\n"
    "adapters. Sizes are bytes, depths and counts are entries.\n"
    "\n"
    "exit status: 0, 1 when an adapter could not be opened or asked, 2 for wrong arguments, an\n"
    "ADAPTER that is not here among them\n";

static bool json;
static bool first_fact; /* no comma before this one */

/* ---- one fact ---- */

static void begin_fact(const char *name)
{
    if (json)
        printf("%s\n      \"%s\": ", first_fact ? "" : ",", name);
    else
        printf("%s: ", name);
    first_fact = false;
}

static void end_fact(void)
{
    if (!json)
        putchar('\n');
}

static void put_text(const char *text)
{
    if (!json) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 32)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void tell_text(const char *name, const char *text)
{
    begin_fact(name);
    put_text(text);
    end_fact();
}

static void tell_number(const char *name, uint64_t value)
{
    begin_fact(name);
    printf("%" PRIu64, value);
    end_fact();
}

/* JSON has no hexadecimal numbers. */
static void tell_hex(const char *name, uint32_t value, unsigned digits)
{
    char text[16];

    snprintf(text, sizeof(text), "0x%0*X", (int)digits, (unsigned)value);
    tell_text(name, text);
}

static void tell_bool(const char *name, bool value)
{
    begin_fact(name);
    fputs(json ? (value ? "true" : "false") : (value ? "yes" : "no"), stdout);
    end_fact();
}

static void tell_addresses(const char *name, const struct softndk_adapter *interface,
                           const char (*addresses)[SOFTNDK_ADDRESS_MAX])
{
    begin_fact(name);
    if (json)
        putchar('[');
    for (ULONG i = 0; i < interface->address_count && i < SOFTNDK_ADDRESSES_MAX; i++) {
        if (i > 0)
            fputs(json ? ", " : " ", stdout);
        put_text(addresses[i]);
    }
    if (json)
        putchar(']');
    end_fact();
}

/* ---- one adapter ---- */

static const char *technology_name(NDK_RDMA_TECHNOLOGY technology)
{
    static const char *const names[] = {"undefined", "iWARP", "InfiniBand", "RoCE", "RoCEv2"};

    return (unsigned)technology < sizeof(names) / sizeof(names[0]) ? names[technology] : "unknown";
}

static void tell_flags(ULONG flags)
{
    static const struct {
        ULONG bit;
        const char *name;
    } known[] = {
        {NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED, "InOrderDma"},
        {NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED, "RdmaReadSinkNotRequired"},
        {NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED, "CqInterruptModeration"},
        {NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED, "MultiEngine"},
        {NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED, "RdmaReadLocalInvalidate"},
        {NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED, "CqResize"},
        {NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED, "LoopbackConnections"},
    };

    tell_hex("AdapterFlags", flags, 8);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        tell_bool(known[i].name, (flags & known[i].bit) != 0);
        flags &= ~known[i].bit;
    }
    tell_hex("UnknownAdapterFlags", flags, 8);
}

static void tell_info(const NDK_ADAPTER_INFO *info)
{
    char version[16];

    snprintf(version, sizeof(version), "%u.%u", info->Version.Major, info->Version.Minor);
    tell_text("Version", version);
    tell_hex("VendorId", info->VendorId, 6);
    tell_hex("DeviceId", info->DeviceId, 8);
    tell_number("MaxRegistrationSize", info->MaxRegistrationSize);
    tell_number("MaxWindowSize", info->MaxWindowSize);
    tell_number("FRMRPageCount", info->FRMRPageCount);
    tell_number("MaxInitiatorRequestSge", info->MaxInitiatorRequestSge);
    tell_number("MaxReceiveRequestSge", info->MaxReceiveRequestSge);
    tell_number("MaxReadRequestSge", info->MaxReadRequestSge);
    tell_number("MaxTransferLength", info->MaxTransferLength);
    tell_number("MaxInlineDataSize", info->MaxInlineDataSize);
    tell_number("MaxInboundReadLimit", info->MaxInboundReadLimit);
    tell_number("MaxOutboundReadLimit", info->MaxOutboundReadLimit);
    tell_number("MaxReceiveQueueDepth", info->MaxReceiveQueueDepth);
    tell_number("MaxInitiatorQueueDepth", info->MaxInitiatorQueueDepth);
    tell_number("MaxSrqDepth", info->MaxSrqDepth);
    tell_number("MaxCqDepth", info->MaxCqDepth);
    tell_number("LargeRequestThreshold", info->LargeRequestThreshold);
    tell_number("MaxCallerData", info->MaxCallerData);
    tell_number("MaxCalleeData", info->MaxCalleeData);
    tell_flags(info->AdapterFlags);
    tell_text("RdmaTechnology", technology_name(info->RdmaTechnology));
}

static void tell_interface(const struct softndk_adapter *interface)
{
    tell_text("Adapter", interface->name);
    tell_number("InterfaceIndex", interface->index);
    tell_bool("Up", interface->up);
    tell_bool("Loopback", interface->loopback);
    tell_number("Mtu", interface->mtu);
    tell_addresses("Addresses", interface, interface->addresses);
    tell_text("HostInterface", interface->host);
    tell_addresses("HostAddresses", interface, interface->host_addresses);
}

/* An exit status; what went wrong is told. */
static int query(const char *selector, NDK_ADAPTER_INFO *info)
{
    ULONG size = sizeof(*info);
    NDK_ADAPTER *adapter;
    NTSTATUS status;

    memset(info, 0, sizeof(*info));
    status = tool_open_adapter(selector, &adapter);
    if (status != STATUS_SUCCESS)
        return status == STATUS_NOT_FOUND ? TOOL_USAGE : TOOL_FAILED;
    status = adapter->Dispatch->NdkQueryAdapterInfo(adapter, info, &size);
    if (status != STATUS_SUCCESS)
        tool_report(&adapter->Header, "NdkQueryAdapterInfo", status);
    softndk_close_adapter(adapter);
    return status == STATUS_SUCCESS ? TOOL_GOOD : TOOL_FAILED;
}

/* ---- all that were asked for ---- */

struct interfaces {
    struct softndk_adapter *list;
    ULONG count;
};

static bool list_interfaces(struct interfaces *all)
{
    ULONG room = 0;
    NTSTATUS status = softndk_adapter_list(NULL, 0, &room);

    all->list = NULL;
    if (status == STATUS_SUCCESS) {
        all->list = calloc(room ? room : 1, sizeof(*all->list));
        status = all->list ? softndk_adapter_list(all->list, room, &all->count)
                           : STATUS_INSUFFICIENT_RESOURCES;
    }
    if (status != STATUS_SUCCESS) {
        tool_report_open("softndk_adapter_list", status);
        free(all->list);
        return false;
    }
    if (all->count > room)
        all->count = room; /* one more came up meanwhile */
    return true;
}

static const struct softndk_adapter *find_name(const struct interfaces *all, const char *name)
{
    for (ULONG i = 0; i < all->count; i++) {
        if (strcmp(all->list[i].name, name) == 0)
            return &all->list[i];
    }
    return NULL;
}

/* The interface that a selector means, which can be opened: NULL only when it has gone since. */
static const struct softndk_adapter *find(const struct interfaces *all, const char *selector)
{
    const struct softndk_adapter *named = find_name(all, selector);
    char text[SOFTNDK_NAME_MAX];

    for (ULONG i = 0; !named && i < all->count; i++) {
        snprintf(text, sizeof(text), "if%u", (unsigned)all->list[i].index);
        if (strcmp(selector, text) == 0 || strcmp(selector, text + 2) == 0)
            named = &all->list[i];
    }
    /* An address of this host: the way to it leads through the interface that has it, or through
     * loopback, which has all of 127.0.0.0/8. */
    for (ULONG i = 0; !named && i < all->count; i++) {
        for (ULONG k = 0; k < all->list[i].address_count; k++) {
            if (strcmp(selector, all->list[i].addresses[k]) == 0)
                return &all->list[i];
        }
    }
    if (!named &&
        softndk_adapter_for_route(selector, text, sizeof(text), NULL, 0) == STATUS_SUCCESS)
        named = find_name(all, text);
    return named;
}

static int show(const struct softndk_adapter *interface, const char *selector)
{
    static unsigned shown;
    NDK_ADAPTER_INFO info;
    int result = query(selector, &info);

    if (result != TOOL_GOOD)
        return result;
    if (json)
        printf("%s\n    {", shown ? "," : "");
    else if (shown)
        putchar('\n');
    shown++;
    first_fact = true;
    if (interface)
        tell_interface(interface);
    else
        tell_text("Adapter", selector);
    tell_info(&info);
    if (json)
        fputs("\n    }", stdout);
    return result;
}

static int show_all(char **selectors, int count)
{
    struct interfaces all = {NULL, 0};
    int result = TOOL_GOOD, one;

    if (!list_interfaces(&all))
        return TOOL_FAILED;
    if (json) {
        printf("{\n  \"Softndk\": ");
        put_text(softndk_version_string());
        fputs(",\n  \"Adapters\": [", stdout);
    }
    for (int i = 0; i < count; i++) {
        one = show(find(&all, selectors[i]), selectors[i]);
        result = one > result ? one : result;
    }
    for (ULONG i = 0; count == 0 && i < all.count; i++) {
        one = all.list[i].up ? show(&all.list[i], all.list[i].name) : TOOL_GOOD;
        result = one > result ? one : result;
    }
    if (json)
        fputs("\n  ]\n}\n", stdout);
    free(all.list);
    return result;
}

/* A text of the library: describe() is asked for its length, then for itself. */
static int show_text(size_t (*describe)(char *text, size_t size))
{
    size_t size = describe(NULL, 0) + 1;
    char *text;

    if (size == 1) { /* only the configuration can be missing */
        tool_report_open("configuration", STATUS_INVALID_PARAMETER);
        return TOOL_FAILED;
    }
    text = malloc(size);
    if (!text) {
        tool_say("no memory");
        return TOOL_FAILED;
    }
    describe(text, size);
    fputs(text, stdout);
    free(text);
    return TOOL_GOOD;
}

int main(int argc, char **argv)
{
    size_t (*describe)(char *text, size_t size) = NULL;
    const char *alone = NULL, *profile = NULL;
    int i;

    tool_name = "ndkinfo";
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return tool_finish(TOOL_GOOD);
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("ndkinfo %s\n", softndk_version_string());
            return tool_finish(TOOL_GOOD);
        }
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc)
            tool_use_profile(profile = argv[++i]);
        else if (strcmp(argv[i], "--profile") == 0)
            return tool_usage_error("--profile: need a name (ndkinfo --profiles lists them)");
        else if (strcmp(argv[i], "--options") == 0)
            describe = softndk_options_describe, alone = argv[i];
        else if (strcmp(argv[i], "--config") == 0)
            describe = softndk_config_describe, alone = argv[i];
        else if (strcmp(argv[i], "--profiles") == 0)
            describe = softndk_profiles_describe, alone = argv[i];
        else
            return tool_usage_error("%s: no such option", argv[i]);
    }
    for (int k = i; k < argc; k++) {
        if (argv[k][0] == '\0' || (argv[k][0] == '-' && argv[k][1]))
            return tool_usage_error("'%s': need an interface's name, address or index", argv[k]);
    }
    if (describe && (json || profile || i < argc))
        return tool_usage_error("%s: stands alone", alone);
    return tool_finish(describe ? show_text(describe) : show_all(argv + i, argc - i));
}
