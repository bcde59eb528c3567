// SPDX-License-Identifier: MIT
/*
 * run.h - the parts of softndk-run: arguments (args.c), loading (load.c), the runtime of a
 * sanitizer that a driver needs (runtime.c), crashes (crash.c), and the run itself (drive.c).
 */
#ifndef SOFTNDK_RUN_H
#define SOFTNDK_RUN_H

#include <softndk.h>

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, besides TOOL_GOOD (clean) and TOOL_USAGE. */
enum {
    RUN_LEFT = 1,     /* findings, or something left */
    RUN_REFUSED = 3,  /* a DriverEntry failed */
    RUN_TIMEOUT = 4,  /* not done within --timeout */
    RUN_UNLOADED = 5, /* a driver could not be loaded */
    RUN_BLOCKED = 6,  /* DriverEntry or DriverUnload did not return */
};

enum { DRIVERS_MAX = 8, NAME_MAX_OF_DRIVER = 64 };

struct driver {
    const char *path;
    char name[NAME_MAX_OF_DRIVER];
    char **settings; /* "key=value", pointers into argv */
    int setting_count;
    void *module;   /* of dlopen */
    char copy[256]; /* a file of its own, when the same driver runs twice; else empty */
    DRIVER_OBJECT object;
    DRIVER_EXTENSION extension;
    WCHAR texts[3][NAME_MAX_OF_DRIVER + 80];
    UNICODE_STRING registry_path, hardware;
    PDRIVER_INITIALIZE entry;
};

struct run {
    struct driver drivers[DRIVERS_MAX];
    int driver_count;
    double timeout_s; /* 0: none */
    double idle_s;    /* < 0: never done by itself */
    double unload_s;
    const char *pend, *fail; /* or NULL */
    bool gdb;
};

/* Reads the arguments; sets the environment that the library reads. -1: go on; else the exit status
 * of the program, which is done. */
int args_read(int argc, char **argv, struct run *run);

/* Executes this program anew with the runtimes of sanitizers that the drivers need loaded first,
 * and under gdb if that is asked for. Returns when neither is needed, or when it failed, after a
 * line: false. */
bool runtime_prepare(const struct run *run, char **argv);
/* Whether a sanitizer is in this process. */
bool runtime_sanitized(void);

/* Loads, finds DriverEntry, fills the driver object and the registry. What is wrong is said. */
bool driver_load(struct driver *driver);
/* Nothing of the driver is called any more; its code stays, for names in reports. */
void driver_forget(struct driver *driver);

/* Tells the lines of source that belong to the drivers' frames in a line of the report. */
void places_tell(const struct run *run, const char *text);

/* Prints where a driver crashed, or aborted, before the process dies of it. */
void crash_watch(const struct run *run);

/* Memory of the calling thread for telling of a crash, should its stack be used up; until it ends.
 */
enum { CRASH_ROOM = 65536 };
void crash_room(char *room);

/* Loads, runs, unloads, reports; the exit status. */
int drive(struct run *run);

#endif
