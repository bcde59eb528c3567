// SPDX-License-Identifier: MIT
/*
 * See args.h. The adapter's options are composed here, since they stand for options of ours;
 * whether their values are good is for the library to say.
 */
#include "args.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softndk.h>

#include "common/tool_args.h"
#include "common/tool_ndk.h"
#include "common/tool_red.h"

enum {
    OPTION_OP = 256,
    OPTION_MODE,
    OPTION_WARMUP,
    OPTION_DEFER,
    OPTION_ROUND_ROBIN,
    OPTION_READS,
    OPTION_INLINE,
    OPTION_BUFFERS,
    OPTION_PAGES,
    OPTION_NO_REG,
    OPTION_VERIFY,
    OPTION_WAIT,
    OPTION_PROGRESS,
    OPTION_COMPLETION,
    OPTION_CRC,
    OPTION_FPDU,
    OPTION_CPU,
    OPTION_JSON,
    OPTION_PLOT,
    OPTION_SELF,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"server", no_argument, NULL, 's'},
    {"client", required_argument, NULL, 'c'},
    {"self", no_argument, NULL, OPTION_SELF},
    {"op", required_argument, NULL, OPTION_OP},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"size", required_argument, NULL, 'S'},
    {"all", no_argument, NULL, 'a'},
    {"iterations", required_argument, NULL, 'n'},
    {"duration", required_argument, NULL, 'D'},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"qps", required_argument, NULL, 'q'},
    {"threads", required_argument, NULL, 'T'},
    {"depth", required_argument, NULL, 't'},
    {"defer", required_argument, NULL, OPTION_DEFER},
    {"cq-mod", required_argument, NULL, 'Q'},
    {"bidirectional", no_argument, NULL, 'b'},
    {"round-robin", no_argument, NULL, OPTION_ROUND_ROBIN},
    {"reads", required_argument, NULL, OPTION_READS},
    {"inline", required_argument, NULL, OPTION_INLINE},
    {"buffers", required_argument, NULL, OPTION_BUFFERS},
    {"pages", required_argument, NULL, OPTION_PAGES},
    {"no-reg", no_argument, NULL, OPTION_NO_REG},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"completion", required_argument, NULL, OPTION_COMPLETION},
    {"crc", required_argument, NULL, OPTION_CRC},
    {"fpdu", required_argument, NULL, OPTION_FPDU},
    {"option", required_argument, NULL, 'o'},
    {"port", required_argument, NULL, 'p'},
    {"local", required_argument, NULL, 'I'},
    {"once", no_argument, NULL, '1'},
    {"cpu", required_argument, NULL, OPTION_CPU},
    {"json", no_argument, NULL, OPTION_JSON},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* What was given, to tell it from defaults. */
struct given {
    bool pages, buffers, depth, sizes, wait, qps, reads, inlined;
    const char *clients; /* the first option that is the client's, without its dashes */
    char adapter[PLAN_ADAPTER_MAX];
};

bool args_size(const char *text, uint32_t *out)
{
    char digits[24];
    size_t length = strlen(text);
    uint64_t number, unit = 1;

    if (length == 0 || length >= sizeof(digits))
        return false;
    memcpy(digits, text, length + 1);
    if (strchr("kKmM", digits[length - 1])) {
        unit = (digits[length - 1] | 0x20) == 'k' ? 1u << 10 : 1u << 20;
        digits[length - 1] = '\0';
    }
    if (!tool_number(digits, 1, PLAN_SIZE_MAX, &number) || number * unit > PLAN_SIZE_MAX)
        return false;
    *out = (uint32_t)(number * unit);
    return true;
}

/* ---- values ---- */

static int take_number(const char *option, uint64_t low, uint64_t high, uint32_t *out)
{
    uint64_t number;

    if (!tool_number(optarg, low, high, &number))
        return tool_usage_error("%s '%s': need a number from %llu to %llu", option, optarg,
                                (unsigned long long)low, (unsigned long long)high);
    *out = (uint32_t)number;
    return -1;
}

static int take_word(const char *option, const char *const *names, int count, int *out)
{
    char list[120] = "";

    for (int i = 0; i < count; i++) {
        if (strcmp(optarg, names[i]) == 0) {
            *out = i;
            return -1;
        }
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "", names[i]);
    }
    return tool_usage_error("%s '%s': need one of %s", option, optarg, list);
}

static int take_size(const char *text, struct perf_options *options)
{
    if (!args_size(text, &options->sizes[0]))
        return tool_usage_error("--size '%s': need octets from 1 to 16M", text);
    options->size_count = 1;
    return -1;
}

/* "0", "1,3" */
static int take_cpus(struct perf_options *options)
{
    char *copy = strdup(optarg), *rest = copy, *word;
    uint64_t cpu;
    bool good = copy && *copy;

    memset(options->cpus, 0, sizeof(options->cpus));
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = tool_number(word, 0, PERF_CPUS_MAX - 1, &cpu);
        if (good)
            options->cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
    }
    free(copy);
    if (!good)
        return tool_usage_error("--cpu '%s': need processors from 0 to %d, as in 0 or 1,3", optarg,
                                PERF_CPUS_MAX - 1);
    options->pinned = true;
    return -1;
}

/* Appends options of adapters. */
static int add_adapter(struct given *given, const char *key, const char *value)
{
    size_t used = strlen(given->adapter);
    int more = snprintf(given->adapter + used, sizeof(given->adapter) - used, "%s%s%s%s",
                        used ? "," : "", key, *key ? "=" : "", value);

    if (more < 0 || (size_t)more >= sizeof(given->adapter) - used)
        return tool_usage_error("--option: more than %zu octets of options",
                                sizeof(given->adapter) - 1);
    if (strpbrk(value, " \t\n"))
        return tool_usage_error("--option '%s': need no blanks", value);
    return -1;
}

/* ---- options ---- */

/* Those of the plan that are numbers or words. -2: not one of them. */
static int take_plan(int letter, struct plan *plan, struct given *given)
{
    int word = 0, wrong = -2;

    switch (letter) {
    case OPTION_OP:
        wrong = take_word("--op", perf_op_names, PERF_OPS, &word);
        plan->op = (enum perf_op)word;
        return wrong;
    case OPTION_MODE:
        wrong = take_word("--mode", perf_mode_names, PERF_MODES, &word);
        plan->mode = (enum perf_mode)word;
        return wrong;
    case OPTION_WAIT:
        given->wait = true;
        wrong = take_word("--wait", perf_wait_names, PERF_WAITS, &word);
        plan->wait = (enum perf_wait)word;
        return wrong;
    case 'D':
        return take_number("--duration", 1, 86400, &plan->seconds);
    case 'q':
        given->qps = true;
        return take_number("--qps", 1, PLAN_QPS_MAX, &plan->qps);
    case 'T':
        return take_number("--threads", 1, PLAN_THREADS_MAX, &plan->threads);
    case 't':
        given->depth = true;
        return take_number("--depth", 1, PLAN_DEPTH_MAX, &plan->depth);
    case OPTION_DEFER:
        return take_number("--defer", 1, PLAN_DEPTH_MAX, &plan->chain);
    case 'Q':
        return take_number("--cq-mod", 1, PLAN_DEPTH_MAX, &plan->moderation);
    case OPTION_READS:
        given->reads = true;
        return take_number("--reads", 1, 128, &plan->reads);
    case OPTION_INLINE:
        given->inlined = true;
        return take_number("--inline", 0, 4096, &plan->inline_size);
    case OPTION_BUFFERS:
        given->buffers = true;
        return take_number("--buffers", 1, 2 * PLAN_DEPTH_MAX, &plan->buffers);
    case OPTION_PAGES:
        given->pages = true;
        return take_number("--pages", 1, 256, &plan->pages);
    default:
        return -2;
    }
}

/* Those of the plan and of the adapters that are flags or texts. -2: not one of them. */
static int take_manner(int letter, struct perf_options *options, struct given *given)
{
    static const char *const progresses[] = {"inline", "engine", "adaptive"};
    static const char *const completions[] = {"local", "placed", "acked"};
    uint32_t number = 0;
    int wrong, word;

    switch (letter) {
    case 'b':
        options->plan.both_ways = true;
        return -1;
    case OPTION_ROUND_ROBIN:
        options->plan.round_robin = true;
        return -1;
    case OPTION_NO_REG:
        options->plan.registers = false;
        return -1;
    case OPTION_VERIFY:
        options->plan.verify = true;
        return -1;
    case OPTION_PROGRESS:
        wrong = take_word("--progress", progresses, 3, &word);
        options->progress = optarg;
        return wrong < 0 ? add_adapter(given, "progress", optarg) : wrong;
    case OPTION_COMPLETION:
        wrong = take_word("--completion", completions, 3, &word);
        options->completion = optarg;
        return wrong < 0 ? add_adapter(given, "completion", optarg) : wrong;
    case OPTION_CRC:
        if (strcmp(optarg, "on") != 0 && strcmp(optarg, "off") != 0)
            return tool_usage_error("--crc '%s': need on or off", optarg);
        options->crc = optarg;
        return add_adapter(given, "crc", optarg);
    case OPTION_FPDU:
        wrong = take_number("--fpdu", 0, 65535, &number);
        options->fpdu = number;
        return wrong < 0 ? add_adapter(given, "fpdu_max", optarg) : wrong;
    case 'o':
        return add_adapter(given, "", optarg);
    default:
        return -2;
    }
}

static int take_count(uint64_t *out, const char *option, uint64_t least)
{
    if (!tool_number(optarg, least, UINT64_C(1) << 48, out))
        return tool_usage_error("%s '%s': need a number from %llu to 281474976710656", option,
                                optarg, (unsigned long long)least);
    return -1;
}

static int take_role(struct perf_options *options, enum perf_role role)
{
    if (options->role != PERF_NO_ROLE && options->role != role)
        return tool_usage_error("need one of --server, --client and --self, not two");
    options->role = role;
    return -1;
}

static int take_server(int argc, char **argv, struct perf_options *options, struct given *given)
{
    uint32_t size;

    /* "-s 4096" is a size, as the other programs of this kind have it; an address is no number. */
    if (!RED("ndkperf-size-not-taken") && optind < argc && argv[optind - 1][0] == '-' &&
        argv[optind - 1][1] != '-' && args_size(argv[optind], &size)) {
        given->sizes = true;
        given->clients = given->clients ? given->clients : "size";
        return take_size(argv[optind++], options);
    }
    return take_role(options, PERF_SERVER);
}

static int take_option(int letter, int argc, char **argv, struct perf_options *options,
                       struct given *given)
{
    uint32_t number = 0;
    int wrong;

    switch (letter) {
    case 's':
        return take_server(argc, argv, options, given);
    case 'c':
        options->address = optarg;
        return take_role(options, PERF_CLIENT);
    case OPTION_SELF:
        return take_role(options, PERF_SELF);
    case 'S':
        given->sizes = true;
        return take_size(optarg, options);
    case 'a':
        given->sizes = true;
        options->size_count = 0;
        for (uint32_t size = 2; size <= 8u << 20; size *= 2)
            options->sizes[options->size_count++] = size;
        return -1;
    case 'n':
        return take_count(&options->iterations, "--iterations", 1);
    case OPTION_WARMUP:
        options->warmup_given = true;
        return take_count(&options->plan.warmup, "--warmup", 0);
    case 'p':
        wrong = take_number("--port", 0, 65535, &number);
        options->port = (uint16_t)number;
        return wrong;
    case 'I':
        options->local = optarg;
        return -1;
    case '1':
        options->once = true;
        return -1;
    case OPTION_CPU:
        return take_cpus(options);
    case OPTION_JSON:
        options->json = true;
        return -1;
    case OPTION_PLOT:
        options->plot = optarg;
        return -1;
    case 'h':
        fputs(args_usage, stdout);
        return TOOL_GOOD;
    case OPTION_VERSION:
        printf("ndkperf %s\n", softndk_version_string());
        return TOOL_GOOD;
    default:
        wrong = take_plan(letter, &options->plan, given);
        return wrong != -2 ? wrong : take_manner(letter, options, given);
    }
}

/* ---- afterwards ---- */

/* The server is told what the client was: it would pass over what only it was given. */
static void note_clients(int letter, struct given *given)
{
    static const int others[] = {'s', 'c', OPTION_SELF, 'p', '1', OPTION_CPU};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (letter == others[i])
            return;
    for (const struct option *o = long_options; o->name && !given->clients; o++)
        if (o->val == letter)
            given->clients = o->name;
}

static int check_role(const struct perf_options *options, const struct given *given)
{
    int wrong;

    if (options->role == PERF_NO_ROLE)
        return tool_usage_error("need one of --server, --client and --self");
    if (options->role == PERF_CLIENT && options->port == 0)
        return tool_usage_error("--port '0': a client needs a port from 1 to 65535");
    if (options->role != PERF_SERVER && options->once)
        return tool_usage_error("--once: is the server's");
    if (options->role == PERF_SERVER && given->clients)
        return tool_usage_error("--%s: is the client's", given->clients);
    wrong =
        tool_check_address(options->role == PERF_CLIENT ? "--client" : "address", options->address);
    return wrong >= 0 ? wrong : tool_check_address("--local", options->local);
}

/* What was left to us. */
static void complete_plan(struct perf_options *options, const struct given *given)
{
    struct plan *plan = &options->plan;
    bool alone = plan->mode == PERF_LAT || plan->mode == PERF_CONN;

    if (!given->depth)
        plan->depth = alone ? 1 : plan_is_exchange(plan) ? 16 : 128;
    if (!given->depth && plan->depth < plan->chain + plan->moderation - 1 && !alone)
        plan->depth = plan->chain + plan->moderation - 1;
    if (!given->pages)
        plan->pages = plan->op == PERF_FASTREG ? 16 : 1;
    if (plan->qps < plan->threads && !given->qps)
        plan->qps = plan->threads;
    if (!given->buffers)
        plan->buffers = plan->verify || plan_is_exchange(plan) ? plan->depth + 4 : 1;
    if (options->size_count == 0) {
        options->sizes[0] = plan->mode == PERF_BW && !plan_is_exchange(plan) ? 65536 : 64;
        options->size_count = 1;
    }
    if (plan->mode == PERF_CONN)
        plan->wait = PERF_EVENT; /* there is nothing to poll for */
    plan->spins_long = options->progress && strcmp(options->progress, "engine") != 0;
}

/* Limits of the adapters that a plan needs raised. */
static int raise_limits(struct plan *plan, struct given *given)
{
    uint64_t entries =
        (uint64_t)(plan_receives(plan) + plan_requests(plan)) * (plan->qps / plan->threads + 1);
    char text[24];
    int wrong = -1;

    if (plan->reads != 16) {
        snprintf(text, sizeof(text), "%u", plan->reads);
        wrong = add_adapter(given, "max_inbound_reads", text);
        if (wrong < 0)
            wrong = add_adapter(given, "max_outbound_reads", text);
    }
    if (wrong < 0 && plan->inline_size > 256) {
        snprintf(text, sizeof(text), "%u", plan->inline_size);
        wrong = add_adapter(given, "max_inline", text);
    }
    if (wrong < 0 && entries > 65536) {
        snprintf(text, sizeof(text), "%u", (unsigned)(entries > 1u << 22 ? 1u << 22 : entries));
        wrong = add_adapter(given, "max_cq_depth", text);
    }
    return wrong;
}

static uint64_t default_iterations(const struct plan *plan, uint32_t size)
{
    uint64_t most = (UINT64_C(1) << 31) / size; /* 2 GiB are enough */

    if (plan->mode == PERF_CONN)
        return 1000;
    if (plan->mode == PERF_RATE && !plan_is_exchange(plan))
        return most < 500000 ? most : 500000;
    if (plan->mode == PERF_LAT || plan_is_exchange(plan))
        return most < 10000 ? most : 10000;
    return most < 5000 ? most : most > 50000 ? 50000 : most;
}

struct plan args_plan(const struct perf_options *options, unsigned n)
{
    struct plan plan = options->plan;
    uint64_t iterations = options->iterations;

    plan.size = options->sizes[n];
    if (plan.seconds == 0)
        plan.iterations = iterations ? iterations : default_iterations(&plan, plan.size);
    if (!options->warmup_given) {
        uint64_t base = plan.iterations ? plan.iterations : default_iterations(&plan, plan.size);

        plan.warmup = base / 10 < 1000 ? base / 10 : 1000;
    }
    return plan;
}

/* What would be passed over in silence. */
static int check_idle(const struct perf_options *options, const struct given *given)
{
    const struct plan *plan = &options->plan;
    const char *idle = given->sizes ? "size" : given->inlined ? "inline" : "reads";

    if (plan->mode == PERF_CONN && (given->sizes || given->inlined || given->reads))
        return tool_usage_error("--mode conn: sends nothing, and takes no --%s%s", idle,
                                given->sizes ? " or --all" : "");
    if (plan->mode == PERF_CONN && given->buffers)
        return tool_usage_error("--mode conn: sends nothing, and takes no --buffers");
    if (plan->mode == PERF_CONN && given->wait && plan->wait == PERF_SPIN)
        return tool_usage_error("--mode conn: works in callbacks; need --wait event (have spin)");
    if (!plan_is_exchange(plan) && (given->pages || !plan->registers))
        return tool_usage_error("--%s: needs --op send-inv or fastreg (have %s)",
                                given->pages ? "pages" : "no-reg", perf_op_names[plan->op]);
    if (given->inlined && plan->op == PERF_READ)
        return tool_usage_error("--inline: a read carries no octets; needs another --op");
    return -1;
}

static int check_plans(struct perf_options *options, struct given *given)
{
    char error[240];
    int wrong = check_idle(options, given);

    if (wrong >= 0)
        return wrong;

    if (options->plan.seconds && options->iterations)
        return tool_usage_error(
            "--duration: %u s, and --iterations says how many; need one of them",
            options->plan.seconds);
    complete_plan(options, given);
    wrong = raise_limits(&options->plan, given);
    if (wrong >= 0)
        return wrong;
    memcpy(options->plan.adapter, given->adapter, sizeof(given->adapter));
    for (unsigned i = 0; i < options->size_count; i++) {
        struct plan plan = args_plan(options, i);

        if (!plan_check(&plan, error, sizeof(error)))
            return tool_usage_error("%s", error);
    }
    return -1;
}

int args_read(int argc, char **argv, struct perf_options *out)
{
    struct given given = {.adapter = ""};
    int letter, done;

    memset(out, 0, sizeof(*out));
    out->port = PERF_PORT;
    out->plan = (struct plan){
        .chain = 1, .moderation = 1, .qps = 1, .threads = 1, .reads = 16, .registers = true};
    opterr = 0;
    optind = 0; /* begins anew, also for a test's second call */
    while ((letter = getopt_long(argc, argv, ":sc:S:an:D:q:T:t:Q:bo:p:I:1h", long_options, NULL)) !=
           -1) {
        if (letter == '?' || letter == ':')
            return tool_option_error(letter, argv);
        done = take_option(letter, argc, argv, out, &given);
        if (done >= 0)
            return done;
        note_clients(letter, &given);
    }
    if (optind < argc && !out->address)
        out->address = argv[optind++];
    if (optind < argc)
        return tool_usage_error("%s: unexpected argument", argv[optind]);
    done = check_role(out, &given);
    return done >= 0 || out->role == PERF_SERVER ? done : check_plans(out, &given);
}
