// SPDX-License-Identifier: MIT
/* See options.h. A text is applied to a copy first, so a bad key leaves nothing half-changed. */
#include "base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"

#define ROW(field, unit, low, high, standard, help)                                                \
    {                                                                                              \
#field, unit, help, low, high, standard, offsetof(struct options, field)                   \
    }

static const struct option_info table[] = {
    ROW(connect_ms, "ms", 0, 3600000, 10000, "active side: SYN to MPA Reply"),
    ROW(request_ms, "ms", 0, 3600000, 5000, "passive side: TCP accept to a whole MPA Request"),
    ROW(establish_ms, "ms", 0, 3600000, 10000,
        "Reply to ready-to-receive message (passive) or to CompleteConnect (active)"),
    ROW(holdback_ms, "ms", 0, 3600000, 5000,
        "how long a Send waits for a receive to be posted; 0 terminates at once"),
    ROW(disconnect_ms, "ms", 0, 3600000, 10000, "our FIN to the peer's FIN"),
    ROW(linger_ms, "ms", 0, 3600000, 1000,
        "close: how long octets of completed requests may stay unacknowledged without progress"),
    ROW(drain_ms, "ms", 1, 3600000, 1000, "after a Terminate: read and discard until the FIN"),
    ROW(user_timeout_ms, "ms", 0, 3600000, 30000, "TCP user timeout: a vanished peer"),
    ROW(keepalive_s, "s", 0, 86400, 120, "TCP keepalive idle time"),
    ROW(crc, "0/1", 0, 1, 1, "ask for CRC32C in every FPDU; off only when both ends say off"),
    ROW(mpa_revision, "", 1, 2, 2, "MPA revision of our Requests"),
    ROW(p2p, "0/1", 0, 1, 1, "ask for the peer-to-peer model (a ready-to-receive message)"),
    ROW(retry_v1, "0/1", 0, 1, 1, "one retry with revision 1 when a peer closes on revision 2"),
    ROW(fpdu_max, "octets", 0, 65535, 0, "cap on the ULPDU we send; 0 = from the segment size"),
    ROW(first_fpdu_delay_us, "us", 0, 10000000, 0,
        "wait after the Reply before our first FPDU (peers that hook their socket late)"),
    ROW(nudge_ms, "ms", 0, 3600000, 200,
        "active side: nothing came for so long after our first FPDU: one empty Write, for a peer "
        "that overlooked it; 0 = never"),
    ROW(completion, "", 0, 2, 0, "what a completion promises: local, placed or acked (0, 1, 2)"),
    ROW(tcp_buffer, "octets", 0, 1u << 30, 0, "socket buffers; 0 = the system sizes them"),
    ROW(staging_cap, "octets", 65544, 1u << 30, 64u << 20,
        "incomplete FPDUs that the process keeps; above it the connection without progress for "
        "the longest time is reset"),
    ROW(port_low, "port", 1, 65535, 49152, "first ephemeral port"),
    ROW(port_high, "port", 1, 65535, 65535, "last ephemeral port"),
    ROW(max_pending_connects, "connectors", 1, 65536, 128, "undecided connectors of one listener"),
    ROW(max_startups, "connections", 1, 65536, 512,
        "connections of one listener that have not sent a whole MPA Request"),
    ROW(shards, "threads", 0, 64, 0, "reactor threads of the process; 0 = 2 to 8 by processors"),
    ROW(spin_us, "us", 0, 1000000, 0, "how long an idle shard polls before it sleeps"),
    ROW(ndkpi_major, "", 1, 2, 2, "highest NDKPI major version offered"),
    ROW(ndkpi_minor, "", 0, 2, 1, "highest minor version of that major"),
    ROW(max_initiator_sge, "SGEs", 1, 64, 16, "MaxInitiatorRequestSge"),
    ROW(max_receive_sge, "SGEs", 1, 64, 16, "MaxReceiveRequestSge"),
    ROW(max_read_sge, "SGEs", 1, 64, 16, "MaxReadRequestSge"),
    ROW(max_inline, "octets", 0, 4096, 256, "MaxInlineDataSize"),
    ROW(max_transfer, "octets", 1, 0x40000000u, 0x40000000u, "MaxTransferLength"),
    ROW(max_inbound_reads, "reads", 0, 128, 16, "MaxInboundReadLimit"),
    ROW(max_outbound_reads, "reads", 0, 128, 16, "MaxOutboundReadLimit"),
    ROW(max_initiator_depth, "requests", 1, 65536, 4096, "MaxInitiatorQueueDepth"),
    ROW(max_receive_depth, "requests", 1, 65536, 4096, "MaxReceiveQueueDepth"),
    ROW(max_srq_depth, "requests", 0, 65536, 4096, "MaxSrqDepth; 0 = no shared receive queues"),
    ROW(max_cq_depth, "entries", 1, 1u << 22, 65536, "MaxCqDepth"),
    ROW(frmr_pages, "pages", 16, 65536, 256, "FRMRPageCount"),
    ROW(max_caller_data, "octets", 0, 508, 251, "MaxCallerData"),
    ROW(max_callee_data, "octets", 0, 508, 251, "MaxCalleeData"),
    ROW(read_sink_not_required, "0/1", 0, 1, 1, "advertise RDMA_READ_SINK_NOT_REQUIRED"),
    ROW(scattered, "0/1", 0, 1, 0,
        "adapter logical addresses in another order than host pages, never consecutive: finds "
        "consumers that assume contiguous adapter pages"),
};

const struct option_info *options_table(size_t *count)
{
    *count = sizeof table / sizeof table[0];
    return table;
}

static uint32_t *option_field(struct options *o, const struct option_info *info)
{
    return (uint32_t *)((char *)o + info->offset);
}

void options_defaults(struct options *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        *option_field(out, &table[i]) = table[i].standard;
}

static const struct option_info *option_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

static bool option_number(const char *text, size_t len, uint32_t *out)
{
    char digits[24];
    char *end;
    unsigned long long value;

    if (len == 0 || len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (strcmp(digits, "on") == 0 || strcmp(digits, "off") == 0) {
        *out = digits[1] == 'n';
        return true;
    }
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    errno = 0;
    value = strtoull(digits, &end, 0);
    if (errno || *end || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* "1.1" and the like for the pseudo key ndkpi. */
static bool option_ndkpi(struct options *o, const char *text, size_t len)
{
    static const struct {
        const char *text;
        uint32_t major, minor;
    } known[] = {{"1.1", 1, 1}, {"1.2", 1, 2}, {"2.0", 2, 0}, {"2.1", 2, 1}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].text) == len && memcmp(known[i].text, text, len) == 0) {
            o->ndkpi_major = known[i].major;
            o->ndkpi_minor = known[i].minor;
            return true;
        }
    return false;
}

/* "local" and so on for completion. */
static bool option_completion(struct options *o, const char *text, size_t len)
{
    static const char *const names[] = {"local", "placed", "acked"};

    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0) {
            o->completion = i;
            return true;
        }
    return false;
}

static bool option_pair(struct options *o, const char *pair, size_t len, char *error, size_t size)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals ? (size_t)(equals - pair) : len;
    const char *value = equals ? equals + 1 : NULL;
    size_t value_len = equals ? len - name_len - 1 : 0;
    const struct option_info *info;
    uint32_t number;

    if (equals && name_len == 5 && memcmp(pair, "ndkpi", 5) == 0) {
        if (option_ndkpi(o, value, value_len))
            return true;
        snprintf(error, size, "option ndkpi: have \"%.*s\", need 1.1, 1.2, 2.0 or 2.1",
                 (int)value_len, value);
        return false;
    }
    if (equals && name_len == 10 && memcmp(pair, "completion", 10) == 0 &&
        option_completion(o, value, value_len))
        return true;
    info = option_find(pair, name_len);
    if (!info) {
        snprintf(error, size, "unknown option \"%.*s\" (ndkinfo --options lists them)",
                 (int)name_len, pair);
        return false;
    }
    if (!equals || !option_number(value, value_len, &number) || number < info->minimum ||
        (number > info->maximum && !RED("options-no-maximum"))) {
        snprintf(error, size, "option %s: have \"%.*s\", need a number from %u to %u%s%s",
                 info->name, (int)value_len, equals ? value : "", info->minimum, info->maximum,
                 info->unit[0] ? ", " : "", info->unit);
        return false;
    }
    *option_field(o, info) = number;
    return true;
}

bool options_apply(struct options *out, const char *text, char *error, size_t size)
{
    struct options copy = *out;
    const char *p = text ? text : "";

    while (*p) {
        size_t len = strcspn(p, ", \t\n");

        if (len && !option_pair(&copy, p, len, error, size))
            return false;
        p += len;
        if (*p)
            p++;
    }
    if (copy.port_low > copy.port_high) {
        snprintf(error, size, "option port_low: have %u, need <= port_high (%u)", copy.port_low,
                 copy.port_high);
        return false;
    }
    *out = copy;
    return true;
}

bool options_from_environment(struct options *out, char *error, size_t size)
{
    const char *timeouts = getenv("SOFTNDK_TIMEOUTS");

    options_defaults(out);
    if (!options_apply(out, getenv("SOFTNDK_OPTIONS"), error, size))
        return false;
    if (timeouts && *timeouts && strcmp(timeouts, "off") != 0 && strcmp(timeouts, "on") != 0) {
        snprintf(error, size, "SOFTNDK_TIMEOUTS: have \"%.40s\", need on or off", timeouts);
        return false;
    }
    if (timeouts && strcmp(timeouts, "off") == 0) {
        out->connect_ms = out->request_ms = out->establish_ms = 0;
        out->disconnect_ms = out->user_timeout_ms = out->keepalive_s = 0;
        out->nudge_ms = 0;
        if (out->holdback_ms) /* 0 would mean "not at all" */
            out->holdback_ms = 3600000;
    }
    return true;
}
