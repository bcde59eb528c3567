// SPDX-License-Identifier: MIT
/*
 * The command lines of Windows' NDKPing and NdkPerfCmd, for programs that stand in for them:
 *
 *   -S | -C                     server or client
 *   -ServerAddr ADDRESS[:PORT]  where the server listens
 *   -ServerIf INDEX             the server's interface
 *   -ClientAddr ADDRESS         where the client connects from
 *   -ClientIf INDEX             the client's interface
 *   -TestType NAME              which test
 *
 * In letters of either case. A command line that has none of the long ones is left as it is, so a
 * program's own -S and -C keep their meaning there; beside a long one they are roles, unless digits
 * follow, as in "-S 4096".
 */
#ifndef SOFTNDK_TOOL_FORMS_H
#define SOFTNDK_TOOL_FORMS_H

#include <softndk.h>

#include <stdbool.h>
#include <stdint.h>

struct tool_forms {
    bool used; /* there was a long one */
    bool server, client;
    char server_address[SOFTNDK_ADDRESS_MAX]; /* in numbers, without the port; empty: not given */
    uint16_t server_port;                     /* 0: not given */
    char client_address[SOFTNDK_ADDRESS_MAX];
    uint32_t server_interface, client_interface; /* 0: not given */
    const char *test_type;                       /* as given, or NULL */
};

/*
 * Takes these forms out of the command line, before the program reads its own options from what is
 * left. false: one is wrong; said on stderr, and the program ends with TOOL_USAGE.
 */
bool tool_forms_take(int *argc, char **argv, struct tool_forms *out);

#endif
