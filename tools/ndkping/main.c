// SPDX-License-Identifier: MIT
/*
 * ndkping - two ends that read, write and send to each other through NDK, in rping's protocol.
 *
 * An NDK consumer like any other: it sees the public headers only. This file reads the options.
 */
#include "ndkping.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/tool_args.h"
#include "common/tool_forms.h"
#include "common/tool_ndk.h"

static const char usage[] =
    "usage: ndkping -s [options] [ADDRESS]   be the server\n"
    "       ndkping -c [options] ADDRESS     be the client\n"
    "       ndkping -S -ServerAddr ADDRESS:PORT [-ServerIf INDEX] [-TestType rping] [options]\n"
    "       ndkping -C -ServerAddr ADDRESS:PORT [-ClientAddr ADDRESS] [-ClientIf INDEX]\n"
    "               [-TestType rping] [options]\n"
    "\n"
    "  -s, --server\n"
    "  -c, --client\n"
    "  -a, --address ADDRESS  the server's address: numbers, fe80::1%eth0 with its interface. A\n"
    "                         server without it, or with 0.0.0.0 or ::, takes the addresses of "
    "all\n"
    "                         interfaces that are up. May also stand behind the options\n"
    "  -p, --port PORT        0..65535, default 7174; 0: the server takes a free one and tells it\n"
    "  -C, --count COUNT      iterations, 1 or more; default: until interrupted. A server ends a\n"
    "                         connection that goes on after as many\n"
    "  -S, --size SIZE        octets of each read and write, 1..16777216, default 64. Below 23, "
    "and\n"
    "                         with -V, the server must be an ndkping. Otherwise both ends must be\n"
    "                         started with the same size\n"
    "  -v, --verbose          a line for each iteration\n"
    "  -V, --verify           compare all octets; between two ndkpings at both ends\n"
    "  -P, --persistent       server: many clients, one after another or at once, until "
    "interrupted\n"
    "  -I, --local ADDRESS    client: connect from this address, instead of the one that the "
    "route\n"
    "                         gives; server: the same as -a\n"
    "  -W, --wait SECONDS     server: ends when no client has come in that time\n"
    "      --table            client: half round trips and rates of send, write and read\n"
    "      --profile NAME     open adapters with this profile (ndkinfo --profiles lists them)\n"
    "  -h, --help\n"
    "      --version\n"
    "\n"
    "The third and fourth are the command lines of Windows' NDKPing, in letters of either case. "
    "INDEX\n"
    "is that of the interface to open; a server without an address takes those of the interface, "
    "a\n"
    "client the first one. Such a client ends after 10 iterations, or -C COUNT.\n"
    "\n"
    "Speaks the protocol of rping: towards an rping leave out -V and --table, and take 23 octets "
    "or\n"
    "more. The server prints \"listening on ADDRESS:PORT\" and without -P ends after its client.\n"
    "\n"
    "exit status: 0, 1 for a mismatch or a connection that failed or was lost, 2 for wrong\n"
    "arguments\n";

enum { OPTION_TABLE = 256, OPTION_PROFILE, OPTION_VERSION };

static const struct option long_options[] = {
    {"server", no_argument, NULL, 's'},
    {"client", no_argument, NULL, 'c'},
    {"address", required_argument, NULL, 'a'},
    {"port", required_argument, NULL, 'p'},
    {"count", required_argument, NULL, 'C'},
    {"size", required_argument, NULL, 'S'},
    {"verbose", no_argument, NULL, 'v'},
    {"verify", no_argument, NULL, 'V'},
    {"persistent", no_argument, NULL, 'P'},
    {"local", required_argument, NULL, 'I'},
    {"wait", required_argument, NULL, 'W'},
    {"table", no_argument, NULL, OPTION_TABLE},
    {"profile", required_argument, NULL, OPTION_PROFILE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

void ping_interface(uint32_t index, char text[SOFTNDK_ADDRESS_MAX])
{
    text[0] = '\0';
    if (index)
        snprintf(text, SOFTNDK_ADDRESS_MAX, "%u", index);
}

/* Remembers which arguments were given, for those that do not go together. */
struct given {
    bool count, size, port;
};

static int number_error(const char *option, const char *text, const char *need)
{
    return tool_usage_error("%s '%s': need %s", option, text, need);
}

static int take_option(int letter, struct ping_options *options, struct given *given)
{
    uint64_t number;

    switch (letter) {
    case 's':
        options->server = true;
        return -1;
    case 'c':
        options->client = true;
        return -1;
    case 'a':
        options->address = optarg;
        return -1;
    case 'I':
        options->local = optarg;
        return -1;
    case 'v':
        options->verbose = true;
        return -1;
    case 'V':
        options->verify = true;
        return -1;
    case 'P':
        options->persistent = true;
        return -1;
    case OPTION_TABLE:
        options->table = true;
        return -1;
    case OPTION_PROFILE:
        tool_use_profile(optarg);
        return -1;
    case 'p':
        if (!tool_number(optarg, 0, 65535, &number))
            return number_error("--port", optarg, "a number from 0 to 65535");
        options->port = (uint16_t)number;
        given->port = true;
        return -1;
    case 'C':
        if (!tool_number(optarg, 1, UINT64_MAX, &number))
            return number_error("--count", optarg, "a number from 1 to 18446744073709551615");
        options->count = number;
        given->count = true;
        return -1;
    case 'S':
        if (!tool_number(optarg, 1, PING_SIZE_MAX, &number))
            return number_error("--size", optarg, "a number of octets from 1 to 16777216");
        options->size = (ULONG)number;
        given->size = true;
        return -1;
    case 'W':
        if (!tool_number(optarg, 1, PING_WAIT_MAX, &number))
            return number_error("--wait", optarg, "a number of seconds from 1 to 86400");
        options->wait_s = (unsigned)number;
        return -1;
    case 'h':
        fputs(usage, stdout);
        return TOOL_GOOD;
    case OPTION_VERSION:
        printf("ndkping %s\n", softndk_version_string());
        return TOOL_GOOD;
    default:
        return TOOL_USAGE;
    }
}

static int check_server(struct ping_options *options)
{
    if (options->table)
        return tool_usage_error("--table: is the client's; start the server without it");
    if (options->local && options->address)
        return tool_usage_error("--local '%s': a server has one address, and --address gave '%s'",
                                options->local, options->address);
    if (options->local)
        options->address = options->local;
    return -1;
}

static int check_client(const struct ping_options *options, const struct given *given)
{
    SOCKADDR_INET address, local;

    if (!options->address)
        return tool_usage_error("--client: needs the server's address (--address)");
    if (options->port == 0)
        return tool_usage_error("--port '0': a client needs a port from 1 to 65535");
    if (options->persistent || options->wait_s)
        return tool_usage_error("--%s: is the server's",
                                options->persistent ? "persistent" : "wait");
    if (options->table && (given->count || given->size || options->verify))
        return tool_usage_error("--table: takes no --%s: it does what the table needs",
                                given->count  ? "count"
                                : given->size ? "size"
                                              : "verify");
    if (options->local && tool_address(options->local, 0, &local) > 0 &&
        tool_address(options->address, 0, &address) > 0 && local.si_family != address.si_family)
        return tool_usage_error("--local '%s': is not of the same family as '%s'", options->local,
                                options->address);
    return -1;
}

static int check(struct ping_options *options, const struct given *given)
{
    int wrong;

    if (options->server == options->client)
        return tool_usage_error("need one of --server and --client%s",
                                options->server ? ", not both" : "");
    wrong = tool_check_address("--address", options->address);
    if (wrong < 0)
        wrong = tool_check_address("--local", options->local);
    if (wrong < 0)
        wrong = options->server ? check_server(options) : check_client(options, given);
    return wrong;
}

/* One address, named by both NDKPing's form and our option, or by one of them. */
static int join_address(const char *form, char *from_form, const char *option, const char **address)
{
    if (!from_form[0])
        return -1;
    if (*address)
        return tool_usage_error("%s '%s': %s gave '%s'", form, from_form, option, *address);
    *address = from_form;
    return -1;
}

/* What NDKPing's forms ask for, on top of our own options. */
static int join_forms(struct tool_forms *forms, struct ping_options *options,
                      const struct given *given)
{
    int wrong;

    options->server = options->server || forms->server;
    options->client = options->client || forms->client;
    if (forms->test_type && strcasecmp(forms->test_type, "rping") != 0)
        return tool_usage_error("-TestType '%s': need rping", forms->test_type);
    if (options->client && forms->server_interface)
        return tool_usage_error("-ServerIf '%u': is the server's", forms->server_interface);
    if (options->server && (forms->client_interface || forms->client_address[0]))
        return tool_usage_error("-Client%s: is the client's",
                                forms->client_interface ? "If" : "Addr");
    options->interface = forms->server_interface + forms->client_interface; /* one is 0 */
    if (forms->server_port) {
        if (given->port && options->port != forms->server_port)
            return tool_usage_error("-ServerAddr: port %u, and --port gave %u",
                                    (unsigned)forms->server_port, (unsigned)options->port);
        options->port = forms->server_port;
    }
    if (forms->used && options->client && !given->count && !options->table)
        options->count = PING_COUNT_OF_FORMS;
    wrong = join_address("-ServerAddr", forms->server_address, "--address", &options->address);
    if (wrong < 0)
        wrong = join_address("-ClientAddr", forms->client_address, "--local", &options->local);
    return wrong;
}

/* -1: the options are good; otherwise the exit status. */
static int read_options(int argc, char **argv, struct ping_options *options)
{
    static struct tool_forms forms; /* the options point into it */
    struct given given = {false, false, false};
    int letter, done;

    if (!tool_forms_take(&argc, argv, &forms))
        return TOOL_USAGE;
    opterr = 0;
    while ((letter = getopt_long(argc, argv, ":sca:p:C:S:vVPI:W:h", long_options, NULL)) != -1) {
        if (letter == '?' || letter == ':')
            return tool_option_error(letter, argv);
        done = take_option(letter, options, &given);
        if (done >= 0)
            return done;
    }
    if (optind < argc && !options->address)
        options->address = argv[optind++];
    if (optind < argc)
        return tool_usage_error("%s: unexpected argument", argv[optind]);
    done = join_forms(&forms, options, &given);
    return done >= 0 ? done : check(options, &given);
}

int main(int argc, char **argv)
{
    struct ping_options options;
    int result;

    tool_name = "ndkping";
    memset(&options, 0, sizeof(options));
    options.port = PING_PORT;
    options.size = PING_SIZE;
    result = read_options(argc, argv, &options);
    if (result < 0) {
        if (!tool_stop_begin()) {
            tool_say("cannot start a thread for signals");
            return TOOL_FAILED;
        }
        result = options.server ? ping_server(&options) : ping_client(&options);
        tool_stop_end();
    }
    return tool_finish(result);
}
