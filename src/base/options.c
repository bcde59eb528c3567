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
#field, unit, help, low, high, standard, offsetof(struct options, field), NULL             \
    }
/* Values in words: 0 is the first. */
#define WORDS(field, words, standard, help)                                                        \
    {                                                                                              \
#field, "", help, 0,                                                                       \
            sizeof words / sizeof words[0] - 1, standard, offsetof(struct options, field), words   \
    }

static const char *const completions[] = {"local", "placed", "acked"};
static const char *const progresses[] = {"engine", "inline", "adaptive"};
static const char *const versions[] = {"1.1", "1.2", "2.0", "2.1"};
static const char *const technologies[] = {"iwarp", "infiniband", "roce", "rocev2"};

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
    ROW(linger_total_ms, "ms", 0, 3600000, 30000,
        "close: how long they may stay unacknowledged altogether, with progress; 0 = no bound"),
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
    WORDS(completion, completions, 0, "what a completion promises"),
    ROW(tcp_buffer, "octets", 0, 1u << 30, 0, "socket buffers; 0 = the system sizes them"),
    ROW(staging_cap, "octets", 65544, 1u << 30, 64u << 20,
        "incomplete FPDUs that the process keeps; above it the connection without progress for "
        "the longest time is reset"),
    ROW(port_low, "port", 1, 65535, 49152, "first ephemeral port"),
    ROW(port_high, "port", 1, 65535, 65535, "last ephemeral port"),
    ROW(max_pending_connects, "connectors", 1, 65536, 128, "undecided connectors of one listener"),
    ROW(max_startups, "connections", 1, 65536, 1024,
        "connections of one listener that have not sent a whole MPA Request, or are refused"),
    ROW(max_startups_per_peer, "connections", 0, 65536, 0,
        "of them, connections of one peer address (IPv6: of one /64); 0 = half of max_startups"),
    ROW(shards, "threads", 0, 64, 0, "reactor threads of the process; 0 = 2 to 8 by processors"),
    ROW(spin_us, "us", 0, 1000000, 0, "how long an idle shard polls before it sleeps"),
    WORDS(
        progress, progresses, 0,
        "who moves data: engine = the shards; inline = also the consumer's thread whose poll of a "
        "CQ finds nothing; adaptive = the shards, polling (spin_us, 0 = 50) while that pays"),
    WORDS(ndkpi, versions, 3, "highest NDKPI version offered"),
    WORDS(technology, technologies, 0,
          "RdmaTechnology: what the adapter says it is; on the wire it is iWARP"),
    ROW(vendor_id, "", 0, 0xffffff, 0, "VendorId, an OUI"),
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
    ROW(cq_moderation, "0/1", 0, 1, 1, "CqInterruptModeration: advertise it, and do it"),
    ROW(cq_resize, "0/1", 0, 1, 1, "CqResize: advertise it, and do it"),
    ROW(private_data_container, "octets", 0, 512, 0,
        "NdkGetConnectionData reports at least so much private data, zero-filled, as transports "
        "with a fixed container do; 0 = what the peer sent"),
    ROW(private_data_exact, "0/1", 0, 1, 0,
        "a quirk that was seen: a buffer larger than the container gets success and no octets"),
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

const char *option_text(const struct option_info *info, uint32_t value, char room[OPTION_TEXT_MAX])
{
    if (info->words && value <= info->maximum)
        return info->words[value];
    snprintf(room, OPTION_TEXT_MAX, "%u", value);
    return room;
}

const struct option_info *option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
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

static bool option_word(const struct option_info *info, const char *text, size_t len, uint32_t *out)
{
    for (uint32_t i = 0; i <= info->maximum; i++)
        if (strlen(info->words[i]) == len && memcmp(info->words[i], text, len) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* "1.1, 1.2, 2.0 or 2.1" */
static void words_list(const struct option_info *info, char *text, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i <= info->maximum && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0               ? ""
                                 : i == info->maximum ? " or "
                                                      : ", ",
                                 info->words[i]);
}

bool option_set(struct options *out, const char *key, size_t key_length, const char *value,
                size_t value_length, char *error, size_t size)
{
    const struct option_info *info = option_find(key, key_length);
    char words[80];
    uint32_t number;

    if (!info) {
        snprintf(error, size, "unknown option \"%.*s\" (ndkinfo --options lists them)",
                 (int)key_length, key);
        return false;
    }
    if (info->words) {
        if (option_word(info, value, value_length, &number)) {
            *option_field(out, info) = number;
            return true;
        }
        words_list(info, words, sizeof words);
        snprintf(error, size, "option %s: have \"%.*s\", need %s", info->name, (int)value_length,
                 value, words);
        return false;
    }
    if (!option_number(value, value_length, &number) || number < info->minimum ||
        (number > info->maximum && !RED("options-no-maximum"))) {
        snprintf(error, size, "option %s: have \"%.*s\", need a number from %u to %u%s%s",
                 info->name, (int)value_length, value, info->minimum, info->maximum,
                 info->unit[0] ? ", " : "", info->unit);
        return false;
    }
    *option_field(out, info) = number;
    return true;
}

bool options_check(const struct options *options, char *error, size_t size)
{
    if (options->port_low <= options->port_high)
        return true;
    snprintf(error, size, "option port_low: have %u, need <= port_high (%u)", options->port_low,
             options->port_high);
    return false;
}

/* ---- a text of pairs ------------------------------------------------------------------------ */

#define SEPARATORS ", \t\n"

/* The next pair of *text, its length; 0 at the end. */
static size_t next_pair(const char **text)
{
    *text += strspn(*text, SEPARATORS);
    return strcspn(*text, SEPARATORS);
}

static bool is_profile(const char *pair, size_t length)
{
    return length >= 8 && memcmp(pair, "profile=", 8) == 0;
}

const char *option_profile(const char *text, size_t *length)
{
    const char *found = NULL;
    size_t n;

    for (const char *p = text ? text : ""; (n = next_pair(&p)) != 0; p += n)
        if (is_profile(p, n)) {
            found = p + 8;
            *length = n - 8;
        }
    return found;
}

static bool apply(struct options *out, const char *text, bool after_profile, char *error,
                  size_t size)
{
    struct options copy = *out;
    size_t n;

    for (const char *p = text ? text : ""; (n = next_pair(&p)) != 0; p += n) {
        const char *equals = memchr(p, '=', n);
        size_t key = equals ? (size_t)(equals - p) : n;

        if (is_profile(p, n)) {
            if (after_profile)
                continue;
            snprintf(error, size, "option profile: is chosen when an adapter is opened");
            return false;
        }
        if (!option_set(&copy, p, key, equals ? equals + 1 : "", equals ? n - key - 1 : 0, error,
                        size))
            return false;
    }
    if (!options_check(&copy, error, size))
        return false;
    *out = copy;
    return true;
}

bool options_apply(struct options *out, const char *text, char *error, size_t size)
{
    return apply(out, text, false, error, size);
}

bool options_apply_after_profile(struct options *out, const char *text, char *error, size_t size)
{
    return apply(out, text, true, error, size);
}

/* ---- values that mean more than a number ---------------------------------------------------- */

void options_timeouts_off(struct options *out)
{
    out->connect_ms = out->request_ms = out->establish_ms = 0;
    out->disconnect_ms = out->user_timeout_ms = out->keepalive_s = 0;
    out->nudge_ms = 0;
    if (out->holdback_ms) /* 0 would mean "not at all" */
        out->holdback_ms = 3600000;
}

void options_ndkpi(const struct options *options, unsigned *major, unsigned *minor)
{
    const char *version = versions[options->ndkpi];

    *major = (unsigned)(version[0] - '0');
    *minor = (unsigned)(version[2] - '0');
}
