// SPDX-License-Identifier: MIT
/* kit_run.h - choosing cases, running them, telling the outcome; the other process. */
#ifndef KIT_RUN_H
#define KIT_RUN_H

#include "kit.h"

enum kit_verdict { KIT_PASS, KIT_FAIL, KIT_SKIP };

struct kit_outcome {
    enum kit_verdict verdict;
    char text[512]; /* why, of a failure or a skip */
    ULONG ms;
    BOOLEAN hangs;       /* a half did not end: its threads and objects are still there */
    BOOLEAN second_hand; /* a failure that only follows from the other half's */
};

/* ---- kit_topics.c ---- */

extern const struct kit_topic *const kit_topics[];
extern const ULONG kit_topic_count;
/* NULL: there is none. */
const struct kit_case *kit_find_case(const char *id);
const struct kit_topic *kit_topic_of(const struct kit_case *test);
/* The pattern names the case, its topic, or matches one of them. */
BOOLEAN kit_matches(const struct kit_case *test, const char *pattern);
/* FALSE, with text: two cases share an id, or a row lacks something. */
BOOLEAN kit_topics_sound(char *text, SIZE_T size);

/* ---- kit_run.c ---- */

struct kit_peer;

/* What the adapter at hand can do, asked once. FALSE, with text: it cannot be opened. */
struct kit_probe {
    NDK_ADAPTER_INFO info;
    BOOLEAN endpoints;
};
BOOLEAN kit_probe(const struct kit_config *config, struct kit_probe *probe, char *text,
                  SIZE_T size);
/* peer NULL: both halves run here. */
VOID kit_run_case(const struct kit_case *test, const struct kit_config *config,
                  const struct kit_probe *probe, struct kit_peer *peer,
                  struct kit_outcome *outcome);

/* ---- kit_peer.c ---- */

/* Connects to a serving kit. NULL, with text: it cannot be reached. */
struct kit_peer *kit_peer_connect(const struct kit_config *config, const SOCKADDR_INET *address,
                                  char *text, SIZE_T size);
/* Tells the server to end. */
VOID kit_peer_end(struct kit_peer *peer);
/* Serves until the peer says so or for idle_ms without one; the exit status. */
int kit_serve(const struct kit_config *config, const SOCKADDR_INET *address, ULONG idle_ms);

/* For kit_run.c: the server is to run its half; the channel to it. */
struct kit_channel *kit_peer_begin(struct kit_peer *peer, const struct kit_case *test,
                                   struct kit *half);
/* Tells this half's outcome and gives the other's. FALSE: the peer is gone. */
BOOLEAN kit_peer_over(struct kit_peer *peer, const struct kit_outcome *mine,
                      struct kit_outcome *other);
/* Runs one half and cleans up behind it; also for the server. */
struct kit_half;
struct kit_half *kit_half_new(const struct kit_case *test, const struct kit_config *config,
                              enum kit_role role, struct kit_channel *channel);
struct kit *kit_half_kit(struct kit_half *half);
VOID kit_half_start(struct kit_half *half, struct kit_half *other);
/* Waits for its end, or for twice the limit and a grace; its outcome. Frees it unless it hangs. */
VOID kit_half_end(struct kit_half *half, struct kit_outcome *outcome);

/* ---- kit_answers.c ---- */

/* FALSE: no such file can be written. */
BOOLEAN kit_answers_on(const char *path);
BOOLEAN kit_answers_write(VOID);

/* ---- kit_report.c ---- */

enum kit_format { KIT_TEXT, KIT_JSON };

struct kit_report {
    enum kit_format format;
    struct kit_os_file *junit; /* or NULL */
    ULONG passed, failed, skipped, told;
};
/* A line of --list; told: how many were before. kit_report_list_end(): behind the last. */
VOID kit_report_list(enum kit_format format, const struct kit_case *test, ULONG told);
VOID kit_report_list_end(enum kit_format format, ULONG told);
BOOLEAN kit_report_begin(struct kit_report *report, enum kit_format format, const char *junit,
                         const struct kit_probe *probe);
VOID kit_report_case(struct kit_report *report, const struct kit_case *test,
                     const struct kit_outcome *outcome);
/* FALSE: the file could not be written. */
BOOLEAN kit_report_end(struct kit_report *report);

/* ---- kit_main.c ---- */

/* The program; its exit status: 0, 1 when a case failed, 2 for a usage error. */
int kit_main(int argc, const char *const *argv);

#endif /* KIT_RUN_H */
