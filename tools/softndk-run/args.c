// SPDX-License-Identifier: MIT
/*
 * The arguments of softndk-run. What the library reads from its environment is put there, before
 * its first use; an option wins over a variable that was there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "run.h"

static const char help[] =
    "usage: softndk-run [option...] DRIVER.so [key=value...] [DRIVER.so [key=value...]]...\n"
    "\n"
    "Runs NDK drivers that softndk-cc has built: calls DriverEntry, waits until they are done, "
    "calls\n"
    "DriverUnload, and reports what is left and what they did wrong. A driver finds each key=value "
    "in\n"
    "the registry: in its own key, ...\\Services\\NAME, and in Parameters below it; numbers as\n"
    "REG_DWORD, all else as REG_SZ (or in the notation of .reg files: dword:10, hex:01,02).\n"
    "\n"
    "Done is: no adapter open and no work item queued for a second, or SIGINT or SIGTERM, or the\n"
    "time limit. A second signal ends the process at once.\n"
    "\n"
    "  --name NAME        of the driver that follows; default: its file's name without .so\n"
    "  --timeout S        ends the run after S seconds, with status 4; default: no limit\n"
    "  --idle S           how long nothing must go on; default 1; \"never\": only a signal ends "
    "it\n"
    "  --unload-timeout S for DriverUnload, and for a DriverEntry after a signal; default 30\n"
    "  --profile NAME     what the adapters pretend to be: ndkinfo --profiles\n"
    "  --options LIST     key=value,...: ndkinfo --options\n"
    "  --config FILE      interfaces and addresses as the driver knows them\n"
    "  --pend MODE        how calls answer: never, always, early, random:SEED\n"
    "  --fail RULES       calls that fail: NdkCreateCq:1:STATUS_INSUFFICIENT_RESOURCES,...\n"
    "  --findings MODE    report, or abort: stops at the first finding, for a debugger\n"
    "  --registry FILE    where the registry comes from and goes to\n"
    "  --files FOLDER     what the driver's files are in (ZwCreateFile)\n"
    "  --stacks N         frames of call stacks in the report, 1 to 32; default 8\n"
    "  --log LEVEL        none, error, info, debug\n"
    "  --gdb              under gdb, with the library's timers off\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 clean; 1 findings, or something left; 2 usage; 3 a DriverEntry failed; 4 the "
    "time\n"
    "limit; 5 a driver could not be loaded; 6 DriverEntry or DriverUnload did not return.\n";

/* Options that are variables of the library. */
static const struct {
    const char *option, *variable;
} variables[] = {
    {"--profile", "SOFTNDK_PROFILE"},   {"--options", "SOFTNDK_OPTIONS"},
    {"--config", "SOFTNDK_CONFIG"},     {"--log", "SOFTNDK_LOG"},
    {"--findings", "SOFTNDK_FINDINGS"}, {"--registry", "SOFTNDK_REGISTRY"},
    {"--files", "SOFTNDK_FILES"},       {"--stacks", "SOFTNDK_STACKS"},
};

static bool seconds(const char *text, double *out)
{
    char *end;
    double n = strtod(text, &end);

    if (end == text || *end || !(n >= 0) || n > 1e9)
        return false;
    *out = n;
    return true;
}

/* -1: taken; -2: no option of this kind; else an exit status. */
static int take_value(struct run *run, const char *option, const char *value, const char **name)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (strcmp(option, variables[i].option) == 0) {
            setenv(variables[i].variable, value, 1);
            return -1;
        }
    }
    if (strcmp(option, "--name") == 0) {
        if (!*value || strlen(value) >= NAME_MAX_OF_DRIVER - 4 || strpbrk(value, "\\/"))
            return tool_usage_error("--name: no name of a service (have \"%s\")", value);
        *name = value;
    } else if (strcmp(option, "--timeout") == 0) {
        if (!seconds(value, &run->timeout_s))
            return tool_usage_error("--timeout: seconds (have \"%s\")", value);
    } else if (strcmp(option, "--unload-timeout") == 0) {
        if (!seconds(value, &run->unload_s))
            return tool_usage_error("--unload-timeout: seconds (have \"%s\")", value);
    } else if (strcmp(option, "--idle") == 0) {
        if (strcmp(value, "never") == 0)
            run->idle_s = -1;
        else if (!seconds(value, &run->idle_s))
            return tool_usage_error("--idle: seconds or never (have \"%s\")", value);
    } else if (strcmp(option, "--pend") == 0) {
        run->pend = value;
    } else if (strcmp(option, "--fail") == 0) {
        run->fail = value;
    } else {
        return -2;
    }
    return -1;
}

/* The name of the service: as given, or that of the file; the second of a name gets a number. */
static void name_driver(struct run *run, struct driver *driver, const char *name)
{
    const char *base = strrchr(driver->path, '/');
    int same = 1;

    if (name) {
        snprintf(driver->name, sizeof driver->name, "%s", name);
    } else {
        base = base ? base + 1 : driver->path;
        snprintf(driver->name, sizeof driver->name - 4, "%s", base);
        if (strlen(driver->name) > 3 && strcmp(driver->name + strlen(driver->name) - 3, ".so") == 0)
            driver->name[strlen(driver->name) - 3] = '\0';
    }
    for (int i = 0; i < run->driver_count; i++)
        same += strcmp(run->drivers[i].path, driver->path) == 0 && !name;
    if (same > 1)
        snprintf(driver->name + strlen(driver->name), 4, "%u", (unsigned)same % 100u);
}

static int add_driver(struct run *run, const char *path, const char *name)
{
    struct driver *driver = &run->drivers[run->driver_count];

    if (run->driver_count == DRIVERS_MAX)
        return tool_usage_error("too many drivers (need <= %d)", DRIVERS_MAX);
    driver->path = path;
    name_driver(run, driver, name);
    for (int i = 0; i < run->driver_count; i++)
        if (strcmp(run->drivers[i].name, driver->name) == 0)
            return tool_usage_error("two drivers named %s: --name tells them apart", driver->name);
    run->driver_count++;
    return -1;
}

static bool is_setting(const char *argument)
{
    const char *equals = strchr(argument, '=');
    const char *slash = strchr(argument, '/');

    return equals && equals != argument && (!slash || slash > equals);
}

static int take_word(struct run *run, char **argv, int i, const char **name)
{
    struct driver *last = run->driver_count ? &run->drivers[run->driver_count - 1] : NULL;
    const char *given = *name;

    if (!is_setting(argv[i])) {
        *name = NULL;
        return add_driver(run, argv[i], given);
    }
    if (!last)
        return tool_usage_error("%s: a value comes after its driver", argv[i]);
    if (last->setting_count && last->settings + last->setting_count != &argv[i])
        return tool_usage_error("%s: the values of a driver follow each other", argv[i]);
    if (last->setting_count++ == 0)
        last->settings = &argv[i];
    return -1;
}

int args_read(int argc, char **argv, struct run *run)
{
    const char *name = NULL;
    int rc = -1;

    *run = (struct run){.idle_s = 1, .unload_s = 30};
    for (int i = 1; i < argc && rc == -1; i++) {
        const char *a = argv[i];

        if (strcmp(a, "--help") == 0) {
            fputs(help, stdout);
            return tool_finish(TOOL_GOOD);
        } else if (strcmp(a, "--version") == 0) {
            printf("softndk-run %s\n", softndk_version_string());
            return tool_finish(TOOL_GOOD);
        } else if (strcmp(a, "--gdb") == 0) {
            run->gdb = true;
        } else if (a[0] != '-') {
            rc = take_word(run, argv, i, &name);
        } else if (i + 1 == argc) {
            rc = tool_usage_error("%s: unknown, or its value is missing", a);
        } else {
            rc = take_value(run, a, argv[++i], &name);
            if (rc == -2)
                rc = tool_usage_error("%s: unknown option", a);
        }
    }
    if (rc != -1)
        return rc;
    if (name)
        return tool_usage_error("--name %s: no driver follows", name);
    return run->driver_count ? -1 : tool_usage_error("no driver");
}
