// SPDX-License-Identifier: MIT
/*
 * zwfile.h - where a driver's files are on the host.
 */
#ifndef SOFTNDK_NT_ZWFILE_H
#define SOFTNDK_NT_ZWFILE_H

#include <stdbool.h>

#include "nt/ntname.h"
#include "os/os_file.h"

struct nt_path {
    char host[OS_PATH_MAX]; /* of the file, or where it would be */
    bool exists;
    bool root; /* it is a volume itself */
};

/*
 * Follows a name from a directory of the host, or, with from NULL, from the root of the NT names:
 * "\??\C:\...", "\DosDevices\C:\...", "\GLOBAL??\C:\...", "\SystemRoot\...",
 * "\Device\HarddiskVolume1\...". Components are looked up in any case. STATUS_OBJECT_NAME_INVALID,
 * STATUS_OBJECT_PATH_NOT_FOUND (a directory on the way is missing), STATUS_OBJECT_NAME_NOT_FOUND
 * (no such volume), STATUS_INSUFFICIENT_RESOURCES.
 */
NTSTATUS nt_path_of(const char *from, struct nt_name name, struct nt_path *path);

#endif /* SOFTNDK_NT_ZWFILE_H */
