// SPDX-License-Identifier: MIT
/*
 * See zwfile.h. All files are below one folder, SOFTNDK_FILES: one directory a drive letter, made
 * when it is first named, with Windows, Windows\System32 and Windows\Temp on C.
 */
#include "nt/zwfile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/utf.h"
#include "os/os.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char folder[OS_PATH_MAX / 2]; /* "": it cannot be had */

static void make_directory(const char *below)
{
    char path[OS_PATH_MAX];
    int rc;

    snprintf(path, sizeof path, "%s%s", folder, below);
    rc = os_dir_make(path);
    if (rc < 0 && rc != -EEXIST)
        log_error("SOFTNDK_FILES: cannot make \"%s\" (%s)", path, strerror(-rc));
}

static void folder_find(void)
{
    const char *chosen = getenv("SOFTNDK_FILES");
    int n;

    if (chosen && *chosen)
        n = snprintf(folder, sizeof folder, "%s", chosen);
    else
        n = snprintf(folder, sizeof folder, "%s/softndk-files-%u", os_temp_dir(), os_user_id());
    if (n < 0 || (size_t)n >= sizeof folder) {
        log_error("SOFTNDK_FILES: the path is too long");
        folder[0] = '\0';
        return;
    }
    make_directory("");
    make_directory("/C");
    make_directory("/C/Windows");
    make_directory("/C/Windows/System32");
    make_directory("/C/Windows/Temp");
}

/* A component as the host's name for it. */
static NTSTATUS host_name(const struct nt_name *component, char out[256])
{
    static const char forbidden[] = "<>:\"/|?*";
    char *utf8;
    NTSTATUS status = STATUS_SUCCESS;

    for (size_t i = 0; i < component->units; i++) {
        WCHAR c = component->at[i];

        if (c < ' ' || (c < 0x80 && strchr(forbidden, (char)c)))
            return STATUS_OBJECT_NAME_INVALID;
    }
    utf8 = nt_utf8_of_units(component->at, component->units);
    if (!utf8)
        return STATUS_INSUFFICIENT_RESOURCES;
    if (strlen(utf8) > 255 || strcmp(utf8, ".") == 0 ||
        (strcmp(utf8, "..") == 0 && !RED("nt-path-leaves-folder")))
        status = STATUS_OBJECT_NAME_INVALID;
    else
        strcpy(out, utf8);
    free(utf8);
    return status;
}

/* The volume that a name begins with, as a directory below the folder. */
static NTSTATUS volume_of(struct nt_name *name, char out[16])
{
    struct nt_name first, second;
    WCHAR letter = 0;

    if (!nt_name_next(name, &first))
        return STATUS_OBJECT_NAME_INVALID;
    if (nt_name_is(&first, "SystemRoot")) {
        strcpy(out, "/C/Windows");
        return STATUS_SUCCESS;
    }
    if (!nt_name_next(name, &second))
        return STATUS_OBJECT_NAME_NOT_FOUND;
    if (nt_name_is(&first, "Device") && nt_name_is(&second, "HarddiskVolume1"))
        letter = 'C';
    else if ((nt_name_is(&first, "??") || nt_name_is(&first, "DosDevices") ||
              nt_name_is(&first, "GLOBAL??")) &&
             second.units == 2 && second.at[1] == ':')
        letter = second.at[0] & 0xffdf;
    if (letter < 'A' || letter > 'Z')
        return STATUS_OBJECT_NAME_NOT_FOUND;
    snprintf(out, 16, "/%c", letter);
    make_directory(out);
    return STATUS_SUCCESS;
}

/* One component further down; the path so far exists. */
static NTSTATUS descend(struct nt_path *path, const struct nt_name *component)
{
    char wanted[256], found[256];
    NTSTATUS status = host_name(component, wanted);
    size_t n = strlen(path->host);
    int rc;

    if (status != STATUS_SUCCESS)
        return status;
    rc = os_dir_find(path->host, wanted, found);
    if (rc == -ENOTDIR)
        return STATUS_OBJECT_PATH_NOT_FOUND;
    if (rc < 0 && rc != -ENOENT)
        return STATUS_ACCESS_DENIED;
    path->exists = rc == 0;
    path->root = false;
    rc = snprintf(path->host + n, sizeof path->host - n, "/%s", path->exists ? found : wanted);
    return rc < 0 || (size_t)rc >= sizeof path->host - n ? STATUS_OBJECT_NAME_INVALID
                                                         : STATUS_SUCCESS;
}

NTSTATUS nt_path_of(const char *from, struct nt_name name, struct nt_path *path)
{
    struct nt_name component;
    NTSTATUS status = STATUS_SUCCESS;
    char volume[16] = "";

    pthread_once(&once, folder_find);
    if (!folder[0])
        return STATUS_INSUFFICIENT_RESOURCES;
    if (!from)
        status = volume_of(&name, volume);
    if (status != STATUS_SUCCESS)
        return status;
    snprintf(path->host, sizeof path->host, "%s%s", from ? from : folder, volume);
    path->exists = true;
    path->root = !from;
    while (nt_name_next(&name, &component)) {
        if (!path->exists)
            return STATUS_OBJECT_PATH_NOT_FOUND;
        status = descend(path, &component);
        if (status != STATUS_SUCCESS)
            return status;
    }
    return STATUS_SUCCESS;
}
