// SPDX-License-Identifier: MIT
/*
 * Every tunable of the product in one table: name, unit, range, default and reason. One struct is
 * copied into each adapter when it is opened; later changes of the environment do not reach it.
 *
 * Where the values come from, later ones winning: the defaults of this table, a profile, the
 * environment, the text given at the open. provider/settings.h puts them together; base/profile.h
 * reads profiles.
 */
#ifndef SOFTNDK_BASE_OPTIONS_H
#define SOFTNDK_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
    /* timers, milliseconds; 0 = never */
    uint32_t connect_ms, request_ms, establish_ms, holdback_ms, disconnect_ms, linger_ms, drain_ms;
    uint32_t linger_total_ms;
    uint32_t user_timeout_ms, keepalive_s;
    /* wire */
    uint32_t crc, mpa_revision, p2p, retry_v1, fpdu_max, first_fpdu_delay_us, nudge_ms;
    uint32_t completion;  /* 0 local, 1 placed, 2 acked */
    uint32_t tcp_buffer;  /* octets each way, 0 = the system's own sizing */
    uint32_t staging_cap; /* octets of incomplete FPDUs that the process keeps */
    /* ports */
    uint32_t port_low, port_high, max_pending_connects, max_startups;
    uint32_t max_startups_per_peer; /* 0: half of max_startups */
    /* engine */
    uint32_t shards, spin_us;
    uint32_t progress; /* enum options_progress */
    /* what the adapter advertises */
    uint32_t ndkpi;      /* highest version offered: an index, options_ndkpi() */
    uint32_t technology; /* what it says it is: 0 iWARP, 1 InfiniBand, 2 RoCE, 3 RoCEv2 */
    uint32_t vendor_id;
    uint32_t max_initiator_sge, max_receive_sge, max_read_sge, max_inline, max_transfer;
    uint32_t max_inbound_reads, max_outbound_reads, max_initiator_depth, max_receive_depth;
    uint32_t max_srq_depth, max_cq_depth, frmr_pages, max_caller_data, max_callee_data;
    uint32_t read_sink_not_required;
    uint32_t cq_moderation, cq_resize;
    uint32_t private_data_container; /* octets reported at least, zero-filled; 0: what was sent */
    uint32_t private_data_exact;     /* a larger buffer than the container gets nothing */
    uint32_t scattered; /* adapter pages in another order than host pages: provider/pages.h */
};

enum options_progress { PROGRESS_ENGINE, PROGRESS_INLINE, PROGRESS_ADAPTIVE };

struct option_info {
    const char *name, *unit, *help;
    uint32_t minimum, maximum, standard;
    size_t offset;
    const char *const *words; /* the values in words, maximum + 1 of them; NULL: a number */
};

/* The table, for `ndkinfo --options` and the documents. */
const struct option_info *options_table(size_t *count);
void options_defaults(struct options *out);
/* One value as text: the word, or the number put into room. */
#define OPTION_TEXT_MAX 12
const char *option_text(const struct option_info *info, uint32_t value, char room[OPTION_TEXT_MAX]);
/* Which row has this name, or NULL. */
const struct option_info *option_find(const char *name, size_t length);
/* Sets one option. False with a sentence in error[size] that names the key, what was given and what
 * is allowed; *out is then unchanged. Ranges only; options_check() looks at what goes together. */
bool option_set(struct options *out, const char *key, size_t key_length, const char *value,
                size_t value_length, char *error, size_t size);
bool options_check(const struct options *options, char *error, size_t size);

/*
 * Applies "key=value[,key=value...]", checked as a whole; same result rule. profile=NAME, which
 * comes before all other options and so is no option itself, is refused; after_profile passes over
 * it: the caller has taken it out with option_profile().
 */
bool options_apply(struct options *out, const char *text, char *error, size_t size);
bool options_apply_after_profile(struct options *out, const char *text, char *error, size_t size);
/* The value of the last profile=NAME in the text, not terminated; NULL: there is none. */
const char *option_profile(const char *text, size_t *length);

/* Every timer off, for a debugger. */
void options_timeouts_off(struct options *out);

/* The highest version offered. */
void options_ndkpi(const struct options *options, unsigned *major, unsigned *minor);

#endif
