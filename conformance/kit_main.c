// SPDX-License-Identifier: MIT
/* The command line of ndkconform. */
#include "kit_internal.h"
#include "kit_run.h"

static const char usage[] =
    "usage: ndkconform [OPTION...] [CASE...]\n"
    "Runs conformance cases of the Network Direct Kernel Provider Interface against a provider.\n"
    "CASE: an id (CQ-004), a topic (cq), or a pattern (CQ-01*, *); default all.\n"
    "  --list           print the cases: id, topic, title, reference\n"
    "  --addr ADDR      the local address; with --serve also its port (default 127.0.0.1)\n"
    "  --ipv6           the local address ::1\n"
    "  --peer ADDR:PORT run the server halves in a serving ndkconform there\n"
    "  --serve          be that; ends when the peer does, or after --idle\n"
    "  --idle SECONDS   how long --serve waits for a peer (default 60)\n"
    "  --late MS        with --serve: each half starts so much later, as on a busy host\n"
    "  --profile NAME   adapter option profile=NAME\n"
    "  --options TEXT   adapter options, as the provider reads them\n"
    "  --answer MODE    how calls answer: never, always, early, random:SEED (if the door can)\n"
    "  --ndkpi M.N      open that version (default: the highest)\n"
    "  --slow           also cases that wait for the provider's timers\n"
    "  --limit SECONDS  time limit of a case (default 30)\n"
    "  --json           one JSON document instead of lines\n"
    "  --junit FILE     also write a JUnit file\n"
    "  --answers FILE   also write which function answered which status, and how often\n"
    "  --help           this text\n"
    "  --version        of the provider that this was built with\n"
    "Ends 0 when no case failed, 1 when one did, 2 for a wrong command line or no adapter.\n";

#define PATTERNS 64

struct command {
    const char *patterns[PATTERNS];
    ULONG pattern_count;
    const char *address, *peer, *junit, *profile, *options, *answer, *answers;
    const char *serving; /* the last option that makes sense with --serve only */
    ULONG idle_s, limit_s, late_ms;
    NDK_VERSION version;
    enum kit_format format;
    BOOLEAN list, serve, slow, ipv6, help, version_only;
};

static VOID complain(const char *format, ...) KIT_PRINTF(1, 2);
static VOID complain(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(text, sizeof text, format, arguments);
    va_end(arguments);
    kit_os_complain("ndkconform: ");
    kit_os_complain(text);
    kit_os_complain("\n");
}

/* ---- reading it ----------------------------------------------------------------------------- */

/* "2.1" */
static BOOLEAN read_version(const char *text, NDK_VERSION *out)
{
    if (text[0] < '1' || text[0] > '9' || text[1] != '.' || text[2] < '0' || text[2] > '9' ||
        text[3])
        return FALSE;
    out->Major = (USHORT)(text[0] - '0');
    out->Minor = (USHORT)(text[2] - '0');
    return TRUE;
}

static BOOLEAN read_switch(struct command *c, const char *word)
{
    if (kit_same(word, "--list"))
        c->list = TRUE;
    else if (kit_same(word, "--serve"))
        c->serve = TRUE;
    else if (kit_same(word, "--slow"))
        c->slow = TRUE;
    else if (kit_same(word, "--json"))
        c->format = KIT_JSON;
    else if (kit_same(word, "--ipv6"))
        c->ipv6 = TRUE;
    else if (kit_same(word, "--help"))
        c->help = TRUE;
    else if (kit_same(word, "--version"))
        c->version_only = TRUE;
    else
        return FALSE;
    return TRUE;
}

static BOOLEAN read_number(const char *text, ULONG low, ULONG high, ULONG *out)
{
    return (BOOLEAN)(kit_number(text, out) && *out >= low && *out <= high);
}

/* FALSE: not an option with a value. *need: what the value must be, if it is not. */
static BOOLEAN read_value(struct command *c, const char *word, const char *value, const char **need)
{
    static const char none[] = "";
    const char *text = value ? value : none;
    BOOLEAN good = TRUE;

    *need = "a value";
    if (kit_same(word, "--addr"))
        c->address = value;
    else if (kit_same(word, "--peer"))
        c->peer = value;
    else if (kit_same(word, "--profile"))
        c->profile = value;
    else if (kit_same(word, "--options"))
        c->options = value;
    else if (kit_same(word, "--answer"))
        c->answer = value;
    else if (kit_same(word, "--answers"))
        c->answers = value;
    else if (kit_same(word, "--junit"))
        c->junit = value;
    else if (kit_same(word, "--idle")) {
        *need = "seconds, 0 to 86400";
        c->serving = word;
        good = read_number(text, 0, 86400, &c->idle_s);
    } else if (kit_same(word, "--late")) {
        *need = "milliseconds, 0 to 10000";
        c->serving = word;
        good = read_number(text, 0, 10000, &c->late_ms);
    } else if (kit_same(word, "--limit")) {
        *need = "seconds, 1 to 86400";
        good = read_number(text, 1, 86400, &c->limit_s);
    } else if (kit_same(word, "--ndkpi")) {
        *need = "a version such as 2.1";
        good = read_version(text, &c->version);
    } else {
        return FALSE;
    }
    if (good && value && value[0] != '-') /* not the next option taken for a value */
        *need = NULL;
    return TRUE;
}

/* Options that are read and do not go together. */
static BOOLEAN is_sound(const struct command *c)
{
    if (c->serve && (c->peer || c->list || c->pattern_count)) {
        complain("--serve takes neither --peer, --list nor cases: the client says what runs");
        return FALSE;
    }
    if (c->serve && (c->format == KIT_JSON || c->junit || c->answers)) {
        complain("--serve takes neither --json, --junit nor --answers: the client reports");
        return FALSE;
    }
    if (!c->serve && c->serving) {
        complain("%s goes with --serve", c->serving);
        return FALSE;
    }
    if (c->ipv6 && c->address) {
        complain("--ipv6 is --addr ::1: not together with --addr %s", c->address);
        return FALSE;
    }
    return TRUE;
}

static BOOLEAN read_command(struct command *c, int argc, const char *const *argv)
{
    RtlZeroMemory(c, sizeof *c);
    c->idle_s = 60;
    c->limit_s = 30;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL, *need = NULL;

        if (read_switch(c, argv[i]))
            continue;
        if (read_value(c, argv[i], value, &need)) {
            if (need) {
                complain("%s: have %s, need %s", argv[i], value && value[0] ? value : "nothing",
                         need);
                return FALSE;
            }
            i++;
        } else if (argv[i][0] == '-') {
            complain("unknown option %s", argv[i]);
            return FALSE;
        } else if (c->pattern_count == PATTERNS) {
            complain("more than %u cases named; use a pattern", PATTERNS);
            return FALSE;
        } else {
            c->patterns[c->pattern_count++] = argv[i];
        }
    }
    if (!is_sound(c))
        return FALSE;
    if (c->ipv6)
        c->address = "::1";
    return TRUE;
}

/* ---- doing it ------------------------------------------------------------------------------- */

static BOOLEAN chosen(const struct command *c, const struct kit_case *test)
{
    for (ULONG p = 0; p < c->pattern_count; p++)
        if (kit_matches(test, c->patterns[p]))
            return TRUE;
    return c->pattern_count == 0;
}

/* The next case that was chosen, or NULL. */
static const struct kit_case *next_case(const struct command *c, ULONG *topic, ULONG *row)
{
    for (; *topic < kit_topic_count; (*topic)++, *row = 0)
        while (*row < kit_topics[*topic]->count) {
            const struct kit_case *test = &kit_topics[*topic]->cases[(*row)++];

            if (chosen(c, test))
                return test;
        }
    return NULL;
}

static BOOLEAN patterns_match(const struct command *c)
{
    for (ULONG p = 0; p < c->pattern_count; p++) {
        BOOLEAN found = FALSE;

        for (ULONG t = 0; t < kit_topic_count; t++)
            for (ULONG i = 0; i < kit_topics[t]->count; i++)
                found |= kit_matches(&kit_topics[t]->cases[i], c->patterns[p]);
        if (!found) {
            complain("no case is named %s; --list shows them", c->patterns[p]);
            return FALSE;
        }
    }
    return TRUE;
}

static BOOLEAN read_addresses(const struct command *c, struct kit_config *config,
                              SOCKADDR_INET *peer, SOCKADDR_INET *serve)
{
    const char *local = c->address ? c->address : "127.0.0.1";
    ULONG length;

    if (c->peer &&
        (kit_door.address(c->peer, peer, &length) != STATUS_SUCCESS || !kit_port(peer))) {
        complain("--peer %s: not an address with a port", c->peer);
        return FALSE;
    }
    if (kit_door.address(local, &config->local, &config->local_length) != STATUS_SUCCESS) {
        complain("--addr %s: not an address", local);
        return FALSE;
    }
    if (c->peer && !c->address && kit_door.local_for &&
        kit_door.local_for(peer, &config->local, &config->local_length) != STATUS_SUCCESS) {
        complain("--peer %s: no way there; name a local address with --addr", c->peer);
        return FALSE;
    }
    *serve = config->local;
    kit_set_port(&config->local, 0);
    return TRUE;
}

/* What was to be told was told, or the exit status for it. */
static int told(int status)
{
    if (kit_os_printed())
        return status;
    complain("standard output: could not be written");
    return 2;
}

static int run_cases(const struct command *c, const struct kit_config *config,
                     const SOCKADDR_INET *peer_address)
{
    char text[512];
    struct kit_probe probe;
    struct kit_peer *peer = NULL;
    struct kit_report report;
    const struct kit_case *test;
    ULONG topic = 0, row = 0;
    BOOLEAN hangs = FALSE;
    LONG late = 0;
    int status;

    if (c->answers && !kit_answers_on(c->answers)) {
        complain("%s: cannot be written", c->answers);
        return 2;
    }
    if (!kit_probe(config, &probe, text, sizeof text)) {
        complain("%s", text);
        return 2;
    }
    if (c->peer) {
        peer = kit_peer_connect(config, peer_address, text, sizeof text);
        if (!peer) {
            complain("--peer %s: %s", c->peer, text);
            return 2;
        }
    }
    if (!kit_report_begin(&report, c->format, c->junit, &probe)) {
        complain("%s: cannot be written", c->junit);
        return 2;
    }
    while ((test = next_case(c, &topic, &row)) != NULL) {
        struct kit_outcome outcome;

        kit_run_case(test, config, &probe, peer, &outcome);
        if (kit_life_late(text, sizeof text) > late && outcome.verdict != KIT_FAIL) {
            outcome.verdict = KIT_FAIL;
            kit_print_to(outcome.text, sizeof outcome.text, "meanwhile %s", text);
        }
        late = kit_life_late(text, sizeof text);
        kit_report_case(&report, test, &outcome);
        hangs |= outcome.hangs;
    }
    if (peer)
        kit_peer_end(peer);
    if (!kit_report_end(&report)) {
        complain("%s: could not be written", c->junit);
        return 2;
    }
    if (c->answers && !kit_answers_write()) {
        complain("%s: could not be written", c->answers);
        return 2;
    }
    status = told(report.failed ? 1 : 0);
    if (hangs)
        kit_os_exit(status);
    return status;
}

static int list_cases(const struct command *c)
{
    ULONG topic = 0, row = 0, count = 0;
    const struct kit_case *test;

    while ((test = next_case(c, &topic, &row)) != NULL)
        kit_report_list(c->format, test, count++);
    kit_report_list_end(c->format, count);
    return told(0);
}

int kit_main(int argc, const char *const *argv)
{
    static char options[1024];
    struct command c;
    struct kit_config config;
    SOCKADDR_INET peer, serve;
    char text[256];

    if (!read_command(&c, argc, argv)) {
        kit_os_complain(usage);
        return 2;
    }
    if (c.help) {
        kit_os_print(usage);
        return told(0);
    }
    if (c.version_only) {
        kit_print_to(text, sizeof text, "ndkconform %s\n",
                     kit_door.version ? kit_door.version() : kit_door.name);
        kit_os_print(text);
        return told(0);
    }
    if (!kit_topics_sound(text, sizeof text)) {
        complain("%s", text);
        return 2;
    }
    if (!patterns_match(&c))
        return 2;
    if (c.list)
        return list_cases(&c);
    RtlZeroMemory(&config, sizeof config);
    kit_print_to(options, sizeof options, "%s%s%s%s", c.profile ? "profile=" : "",
                 c.profile ? c.profile : "", c.profile && c.options ? "," : "",
                 c.options ? c.options : "");
    config.options = options[0] ? options : NULL;
    config.answer = c.answer;
    config.slow = c.slow;
    config.version = c.version;
    config.limit_ms = c.limit_s * 1000;
    config.late_ms = c.late_ms;
    if (!read_addresses(&c, &config, &peer, &serve))
        return 2;
    if (c.answer && (!kit_door.answer || kit_door.answer(c.answer) != STATUS_SUCCESS)) {
        complain("--answer %s: this provider cannot", c.answer);
        return 2;
    }
    if (c.serve)
        return kit_serve(&config, &serve, c.idle_s * 1000);
    return run_cases(&c, &config, &peer);
}
