// SPDX-License-Identifier: MIT
/*
 * A driver from its file to the moment before its DriverEntry: loading, the driver object, the key
 * of its service in the registry.
 */
#define _GNU_SOURCE 1 /* mkstemps, dladdr */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool_args.h"
#include "run.h"

#define SERVICES "\\Registry\\Machine\\SYSTEM\\CurrentControlSet\\Services\\"

/* ---- the file -------------------------------------------------------------------------------- */

static bool copy_octets(int from, int to)
{
    char buffer[65536];
    ssize_t n;

    while ((n = read(from, buffer, sizeof buffer)) > 0)
        for (ssize_t done = 0, w; done < n; done += w)
            if ((w = write(to, buffer + done, (size_t)(n - done))) <= 0)
                return false;
    return n == 0;
}

/* The loader gives one file once: a driver that runs twice, with variables of its own each time,
 * needs a second file. */
static bool copy_file(struct driver *driver)
{
    const char *folder = getenv("TMPDIR");
    int from = open(driver->path, O_RDONLY | O_CLOEXEC), to = -1;
    bool good = false;

    snprintf(driver->copy, sizeof driver->copy, "%s/softndk-XXXXXX-%s.so",
             folder && *folder ? folder : "/tmp", driver->name);
    if (from >= 0)
        to = mkstemps(driver->copy, (int)strlen(driver->name) + 4);
    if (to < 0)
        driver->copy[0] = '\0';
    else
        good = copy_octets(from, to);
    if (!good)
        tool_say("%s: a second copy of the file failed: %s", driver->path, strerror(errno));
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    return good;
}

static bool load_file(struct driver *driver)
{
    char path[PATH_MAX];
    const char *why;

    /* A name without a slash would be looked for among the system's libraries. */
    snprintf(path, sizeof path, "%s%s", strchr(driver->path, '/') ? "" : "./", driver->path);
    if (access(path, R_OK) != 0) {
        tool_say("%s: %s", driver->path, strerror(errno));
        return false;
    }
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
        if (!copy_file(driver))
            return false;
        snprintf(path, sizeof path, "%s", driver->copy);
    }
    driver->module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (driver->module)
        return true;
    why = dlerror();
    tool_say("cannot load %s: %s%s", driver->path, why ? why : "no reason given",
             why && strstr(why, "undefined symbol")
                 ? " (nobody has this function; docs/nt-surface.md tells which there are)"
                 : "");
    return false;
}

static bool find_entry(struct driver *driver)
{
    /* As a C++ compiler names it that was not told otherwise. */
    static const char mangled[] = "_Z11DriverEntryP14_DRIVER_OBJECTP15_UNICODE_STRING";
    void *entry = dlsym(driver->module, "DriverEntry");

    if (!entry) {
        tool_say("%s has no DriverEntry%s", driver->path,
                 dlsym(driver->module, mangled) ? " (it has one of C++: declare it extern \"C\")"
                                                : " that others can see (hidden, or static?)");
        return false;
    }
    memcpy(&driver->entry, &entry, sizeof entry);
    return true;
}

/* ---- the driver object ----------------------------------------------------------------------- */

/* What every major function is until the driver puts its own there. */
static NTSTATUS invalid_request(PDEVICE_OBJECT device, PIRP irp)
{
    UNREFERENCED_PARAMETER(device);
    irp->IoStatus.Status = STATUS_INVALID_DEVICE_REQUEST;
    irp->IoStatus.Information = 0;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return STATUS_INVALID_DEVICE_REQUEST;
}

static void name_set(UNICODE_STRING *out, WCHAR *room, const char *before, const char *name)
{
    size_t n = 0;

    for (; *before; before++)
        room[n++] = (WCHAR)*before;
    for (; *name; name++)
        room[n++] = (WCHAR)(unsigned char)*name;
    room[n] = 0;
    RtlInitUnicodeString(out, room);
}

static void fill_object(struct driver *d)
{
    Dl_info info;

    d->object.Type = 4; /* IO_TYPE_DRIVER */
    d->object.Size = sizeof d->object;
    d->object.DriverExtension = &d->extension;
    d->object.DriverInit = d->entry;
    d->extension.DriverObject = &d->object;
    name_set(&d->object.DriverName, d->texts[0], "\\Driver\\", d->name);
    name_set(&d->registry_path, d->texts[1], SERVICES, d->name);
    name_set(&d->hardware, d->texts[2], "\\REGISTRY\\MACHINE\\HARDWARE\\DESCRIPTION\\SYSTEM", "");
    d->object.HardwareDatabase = &d->hardware;
    d->extension.ServiceKeyName = d->object.DriverName;
    d->extension.ServiceKeyName.Buffer += 8;
    d->extension.ServiceKeyName.Length -= 8 * sizeof(WCHAR);
    d->extension.ServiceKeyName.MaximumLength -= 8 * sizeof(WCHAR);
    if (dladdr((void *)(ULONG_PTR)d->entry, &info))
        d->object.DriverStart = info.dli_fbase;
    for (int i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        d->object.MajorFunction[i] = invalid_request;
}

/* ---- the registry ---------------------------------------------------------------------------- */

static bool set(const char *key, const char *name, const char *value)
{
    NTSTATUS status = softndk_registry_set(key, name, value);

    if (status == STATUS_SUCCESS)
        return true;
    tool_say("%s=%s: no value for the registry: %s", name, value, softndk_status_name(status));
    return false;
}

/* As the installation of a driver leaves it. */
static bool fill_registry(struct driver *d)
{
    char key[512], below[600], name[256], path[PATH_MAX + 8];
    bool good;

    snprintf(key, sizeof key, SERVICES "%s", d->name);
    snprintf(below, sizeof below, "%s\\Parameters", key);
    snprintf(path, sizeof path, "\"\\\\??\\\\%s\"", d->path);
    good = set(key, "Type", "1") && set(key, "Start", "3") && set(key, "ErrorControl", "1") &&
           set(key, "ImagePath", path);
    for (int i = 0; good && i < d->setting_count; i++) {
        const char *equals = strchr(d->settings[i], '=');

        if ((size_t)(equals - d->settings[i]) >= sizeof name) {
            tool_say("%s: a name of more than %zu octets", d->settings[i], sizeof name - 1);
            return false;
        }
        snprintf(name, sizeof name, "%.*s", (int)(equals - d->settings[i]), d->settings[i]);
        good = set(key, name, equals + 1) && set(below, name, equals + 1);
    }
    return good;
}

bool driver_load(struct driver *driver)
{
    if (!load_file(driver) || !find_entry(driver))
        return false;
    fill_object(driver);
    return fill_registry(driver);
}

void driver_forget(struct driver *driver)
{
    if (driver->copy[0])
        unlink(driver->copy);
    driver->copy[0] = '\0';
}
