// SPDX-License-Identifier: MIT
/*
 * Runs cases. Each half has a thread of its own, so that one that hangs can be left behind with its
 * name: the runner waits for a half at most twice the time limit (the case's, and its clean-up's)
 * and a grace.
 */
#include "kit_internal.h"
#include "kit_run.h"

#define GRACE_MS 5000

struct kit_half {
    struct kit *k;
    kit_function *function;
    struct kit_half *other; /* in this process, or NULL */
    ULONG limit_ms;
    KEVENT over;
};

/* ---- one half ------------------------------------------------------------------------------- */

struct kit_half *kit_half_new(const struct kit_case *test, const struct kit_config *config,
                              enum kit_role role, struct kit_channel *channel)
{
    struct kit_half *half = kit_os_alloc(sizeof *half);

    if (!half)
        return NULL;
    half->k = kit_life_new(test, config, role, channel);
    if (!half->k) {
        kit_os_free(half);
        return NULL;
    }
    half->function = role == KIT_ALONE    ? test->run
                     : role == KIT_SERVER ? test->server
                                          : test->client;
    half->limit_ms = 2 * config->limit_ms + GRACE_MS;
    KeInitializeEvent(&half->over, NotificationEvent, FALSE);
    return half;
}

struct kit *kit_half_kit(struct kit_half *half)
{
    return half->k;
}

static VOID half_main(PVOID context)
{
    struct kit_half *half = context;
    struct kit_inside *in = half->k->in;
    BOOLEAN failed;

    half->function(half->k);
    if (half->k->role == KIT_CLIENT)
        kit_obey_end(half->k);
    (void)kit_answer_mode(half->k, NULL);
    (void)kit_make_fail(half->k, NULL, STATUS_SUCCESS);
    kit_os_lock(&in->lock);
    failed = in->failed || in->skipped;
    kit_os_unlock(&in->lock);
    if (failed && half->other)
        kit_os_set(&half->other->k->in->aborted, 1);
    kit_life_clean(half->k);
    KeSetEvent(&half->over, IO_NO_INCREMENT, FALSE);
}

VOID kit_half_start(struct kit_half *half, struct kit_half *other)
{
    half->other = other;
    half->k->in->deadline = kit_os_ms() + half->k->config->limit_ms;
    if (!kit_os_thread(half_main, half)) {
        kit_fail(half->k, (struct kit_here){NULL, 0}, "the kit has no thread");
        KeSetEvent(&half->over, IO_NO_INCREMENT, FALSE);
    }
}

static VOID half_outcome(struct kit_half *half, struct kit_outcome *outcome)
{
    struct kit_inside *in = half->k->in;
    const char *doing;

    kit_os_lock(&in->lock);
    doing = in->doing;
    outcome->verdict = KIT_PASS;
    outcome->second_hand = FALSE;
    outcome->text[0] = '\0';
    if (outcome->hangs) {
        outcome->verdict = KIT_FAIL;
        kit_print_to(outcome->text, sizeof outcome->text, "hangs in %s%s%s",
                     doing ? doing : "the case's own code", in->failed ? "; before: " : "",
                     in->failed ? in->text : "");
    } else if (in->breaches && (!in->failed || in->second_hand)) {
        outcome->verdict = KIT_FAIL;
        kit_print_to(outcome->text, sizeof outcome->text, "%s", in->breach);
    } else if (in->failed) {
        outcome->verdict = KIT_FAIL;
        outcome->second_hand = in->second_hand;
        kit_print_to(outcome->text, sizeof outcome->text, "%s%s%s", in->text,
                     in->breaches ? "; also: " : "", in->breaches ? in->breach : "");
    } else if (in->skipped) {
        outcome->verdict = KIT_SKIP;
        kit_print_to(outcome->text, sizeof outcome->text, "%s", in->text);
    }
    kit_os_unlock(&in->lock);
}

static BOOLEAN half_hangs(struct kit_half *half)
{
    LARGE_INTEGER limit;

    limit.QuadPart = -10000ll * half->limit_ms;
    return KeWaitForSingleObject(&half->over, Executive, KernelMode, FALSE, &limit) !=
           STATUS_SUCCESS;
}

VOID kit_half_end(struct kit_half *half, struct kit_outcome *outcome)
{
    outcome->hangs = half_hangs(half);
    half_outcome(half, outcome);
    if (outcome->hangs)
        return;
    outcome->hangs = half->k->in->abandoned;
    if (!outcome->hangs) {
        kit_life_bury(half->k);
        kit_os_free(half);
    }
}

/* ---- whether a case can run here ------------------------------------------------------------ */

static VOID probe_body(struct kit *k, struct kit_probe *probe)
{
    struct kit_adapter *adapter;
    struct kit_endpoint *endpoint;

    TRY(kit_adapter_open(k, &adapter));
    probe->info = adapter->info;
    probe->endpoints =
        kit_answer(kit_endpoint_start(adapter, &k->config->local, &endpoint)) == STATUS_SUCCESS;
}

BOOLEAN kit_probe(const struct kit_config *config, struct kit_probe *probe, char *text, SIZE_T size)
{
    struct kit *k = kit_life_new(NULL, config, KIT_ALONE, NULL);
    BOOLEAN good = FALSE;

    RtlZeroMemory(probe, sizeof *probe);
    kit_print_to(text, size, "the kit has no memory");
    if (!k)
        return FALSE;
    probe_body(k, probe);
    kit_life_clean(k);
    good = (BOOLEAN)(probe->info.Version.Major != 0);
    kit_print_to(text, size, "%s", k->in->failed ? k->in->text : k->in->breach);
    kit_life_bury(k);
    return good;
}

static BOOLEAN older(NDK_VERSION have, NDK_VERSION need)
{
    return have.Major < need.Major || (have.Major == need.Major && have.Minor < need.Minor);
}

/* The lowest of some flags of an adapter. */
static const char *flag_name(ULONG flags)
{
    static const struct {
        ULONG flag;
        const char *name;
    } names[] = {
#define NAME(flag) {flag, #flag}
        NAME(NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED),
        NAME(NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
        NAME(NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED),
        NAME(NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED),
        NAME(NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED),
        NAME(NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED),
        NAME(NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED),
#undef NAME
    };

    for (ULONG i = 0; i < RTL_NUMBER_OF(names); i++)
        if (flags & names[i].flag)
            return names[i].name;
    return "an unknown flag";
}

/* Why the case cannot be decided here, or an empty text. */
static VOID lacks(const struct kit_case *test, const struct kit_probe *probe, BOOLEAN peer,
                  BOOLEAN slow, char *text, SIZE_T size)
{
    const NDK_ADAPTER_INFO *info = &probe->info;
    ULONG flags = info->AdapterFlags, needs = test->needs;
    const char *why = "";

    if (((needs & KIT_NEEDS_LOOPBACK) || (!test->run && !peer)) &&
        !(flags & NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED))
        why = test->run ? "the adapter does not connect to itself"
                        : "the adapter does not connect to itself: use --peer";
    else if ((needs & KIT_NEEDS_DIRECT) && !kit_door.direct)
        why = "another layer is between the kit and the provider";
    else if ((needs & KIT_NEEDS_ANSWER) && !kit_door.answer)
        why = "the provider does not let the kit choose how calls answer";
    else if ((needs & KIT_NEEDS_FAIL) && !kit_door.fail)
        why = "cannot be provoked without the provider's help";
    else if ((needs & KIT_NEEDS_SRQ) && !info->MaxSrqDepth)
        why = "the adapter has no shared receive queues";
    else if ((needs & KIT_NEEDS_MW) && !info->MaxWindowSize)
        why = "the adapter has no memory windows";
    else if ((needs & KIT_NEEDS_ENDPOINT) && !probe->endpoints)
        why = "the adapter has no shared endpoints";
    else if ((needs & KIT_NEEDS_PATIENCE) && !slow)
        why = "waits for the provider's timers: use --slow";
    else if ((needs & KIT_NEEDS_READ) &&
             (!info->MaxInboundReadLimit || !info->MaxOutboundReadLimit))
        why = "the adapter has no reads";
    kit_print_to(text, size, "%s", why);
    if (*why)
        return;
    if (test->version.Major && older(info->Version, test->version))
        kit_print_to(text, size, "needs NDKPI %u.%u, the adapter runs %u.%u", test->version.Major,
                     test->version.Minor, info->Version.Major, info->Version.Minor);
    else if ((flags & test->adapter_flags) != test->adapter_flags)
        kit_print_to(text, size, "the adapter does not set %s",
                     flag_name(test->adapter_flags & ~flags));
    else if (flags & test->adapter_flags_clear)
        kit_print_to(text, size, "for an adapter without %s, this one sets it",
                     flag_name(test->adapter_flags_clear & flags));
}

/* ---- a case --------------------------------------------------------------------------------- */

/* Of the outcomes of two halves the one that tells more. */
static int weight(const struct kit_outcome *outcome)
{
    if (outcome->verdict == KIT_PASS)
        return 0;
    if (outcome->verdict == KIT_FAIL && !outcome->second_hand)
        return outcome->hangs ? 4 : 3;
    return outcome->verdict == KIT_SKIP ? 2 : 1;
}

static VOID join(struct kit_outcome *into, const struct kit_outcome *other)
{
    BOOLEAN hangs = (BOOLEAN)(into->hangs || other->hangs);

    if (weight(other) > weight(into))
        *into = *other;
    into->hangs = hangs;
}

static VOID no_memory(struct kit_outcome *outcome)
{
    outcome->verdict = KIT_FAIL;
    kit_print_to(outcome->text, sizeof outcome->text, "the kit has no memory");
}

static VOID run_alone(const struct kit_case *test, const struct kit_config *config,
                      struct kit_outcome *outcome)
{
    struct kit_half *half = kit_half_new(test, config, KIT_ALONE, NULL);

    if (!half) {
        no_memory(outcome);
        return;
    }
    kit_half_start(half, NULL);
    kit_half_end(half, outcome);
}

/* Channels of cases that hang are never freed. */
struct channels {
    struct kit_channel a, b;
};

static VOID run_both(const struct kit_case *test, const struct kit_config *config,
                     struct kit_outcome *outcome)
{
    struct channels *channels = kit_os_alloc(sizeof *channels);
    struct kit_half *server, *client;
    struct kit_outcome other;

    if (!channels) {
        no_memory(outcome);
        return;
    }
    kit_channel_join(&channels->a, &channels->b);
    server = kit_half_new(test, config, KIT_SERVER, &channels->a);
    client = kit_half_new(test, config, KIT_CLIENT, &channels->b);
    if (!server || !client) {
        no_memory(outcome);
        return;
    }
    kit_half_start(server, client);
    kit_half_start(client, server);
    RtlZeroMemory(&other, sizeof other);
    (void)half_hangs(client); /* until then each may tell the other that it failed */
    kit_half_end(server, &other);
    kit_half_end(client, outcome);
    join(outcome, &other);
    if (!outcome->hangs && !other.hangs) {
        kit_channel_empty(&channels->a);
        kit_channel_empty(&channels->b);
        kit_os_free(channels);
    }
}

static VOID run_with_peer(const struct kit_case *test, const struct kit_config *config,
                          struct kit_peer *peer, struct kit_outcome *outcome)
{
    struct kit_half *client = kit_half_new(test, config, KIT_CLIENT, NULL);
    struct kit_outcome other;

    if (!client) {
        no_memory(outcome);
        return;
    }
    client->k->in->channel = kit_peer_begin(peer, test, client->k);
    if (!client->k->in->channel) {
        outcome->verdict = KIT_FAIL;
        kit_print_to(outcome->text, sizeof outcome->text, "the peer is gone");
        kit_life_bury(client->k);
        kit_os_free(client);
        return;
    }
    kit_half_start(client, NULL);
    kit_half_end(client, outcome);
    RtlZeroMemory(&other, sizeof other);
    if (!kit_peer_over(peer, outcome, &other)) {
        other.verdict = KIT_FAIL;
        kit_print_to(other.text, sizeof other.text, "the peer is gone");
    }
    join(outcome, &other);
}

VOID kit_run_case(const struct kit_case *test, const struct kit_config *config,
                  const struct kit_probe *probe, struct kit_peer *peer, struct kit_outcome *outcome)
{
    ULONGLONG begin = kit_os_ms();
    ULONG findings;

    RtlZeroMemory(outcome, sizeof *outcome);
    lacks(test, probe, (BOOLEAN)(peer != NULL), config->slow, outcome->text, sizeof outcome->text);
    if (outcome->text[0]) {
        outcome->verdict = KIT_SKIP;
        return;
    }
    findings = kit_door.findings ? kit_door.findings() : 0;
    if (test->run)
        run_alone(test, config, outcome);
    else if (peer)
        run_with_peer(test, config, peer, outcome);
    else
        run_both(test, config, outcome);
    if (kit_door.findings && outcome->verdict != KIT_FAIL && kit_door.findings() != findings) {
        outcome->verdict = KIT_FAIL;
        kit_print_to(outcome->text, sizeof outcome->text,
                     "the provider has %u findings more than before (its log tells them)",
                     (unsigned)(kit_door.findings() - findings));
    }
    outcome->ms = (ULONG)(kit_os_ms() - begin);
}
