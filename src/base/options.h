// SPDX-License-Identifier: MIT
/*
 * Every tunable of the product in one table: name, unit, range, default and reason. One struct is
 * copied into each adapter when it is opened; later changes of the environment do not reach it.
 *
 * Sources, later ones win: the defaults, SOFTNDK_OPTIONS="key=value,key=value", the options text
 * given to softndk_open_adapter(). SOFTNDK_TIMEOUTS=off turns every timer off (for a debugger).
 */
#ifndef SOFTNDK_BASE_OPTIONS_H
#define SOFTNDK_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
    /* timers, milliseconds; 0 = never */
    uint32_t connect_ms, request_ms, establish_ms, holdback_ms, disconnect_ms, linger_ms, drain_ms;
    uint32_t user_timeout_ms, keepalive_s;
    /* wire */
    uint32_t crc, mpa_revision, p2p, retry_v1, fpdu_max, first_fpdu_delay_us, nudge_ms;
    uint32_t completion;  /* 0 local, 1 placed, 2 acked */
    uint32_t tcp_buffer;  /* octets each way, 0 = the system's own sizing */
    uint32_t staging_cap; /* octets of incomplete FPDUs that the process keeps */
    /* ports */
    uint32_t port_low, port_high, max_pending_connects, max_startups;
    /* engine */
    uint32_t shards, spin_us;
    /* what the adapter advertises */
    uint32_t ndkpi_major, ndkpi_minor;
    uint32_t max_initiator_sge, max_receive_sge, max_read_sge, max_inline, max_transfer;
    uint32_t max_inbound_reads, max_outbound_reads, max_initiator_depth, max_receive_depth;
    uint32_t max_srq_depth, max_cq_depth, frmr_pages, max_caller_data, max_callee_data;
    uint32_t read_sink_not_required;
    uint32_t scattered; /* adapter pages in another order than host pages: provider/pages.h */
};

struct option_info {
    const char *name, *unit, *help;
    uint32_t minimum, maximum, standard;
    size_t offset;
};

/* The table, for `ndkinfo --options` and the documents. */
const struct option_info *options_table(size_t *count);
void options_defaults(struct options *out);
/* Applies "key=value[,key=value...]". False with a sentence in error[size] that names the key, what
 * was given and what is allowed; *out is then unchanged. */
bool options_apply(struct options *out, const char *text, char *error, size_t size);
/* Defaults, then the environment. Same result rule. */
bool options_from_environment(struct options *out, char *error, size_t size);

#endif
