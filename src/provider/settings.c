// SPDX-License-Identifier: MIT
/* See settings.h. */
#include "provider/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "os/os.h"

#define PLACES_MAX   3
#define PROFILES_MAX 64 /* shown of one directory */
#define PATH_ROOM    1024

/* The configured place; a build without it has the other two. */
#ifndef SOFTNDK_PROFILES_INSTALLED
#define SOFTNDK_PROFILES_INSTALLED "/usr/local/share/softndk/profiles"
#endif

/* ---- where profiles are --------------------------------------------------------------------- */

struct places {
    unsigned count;
    char path[PLACES_MAX][PATH_ROOM];
};

static void add_place(struct places *places, const char *above, const char *below)
{
    char *path = places->path[places->count];
    int n = snprintf(path, PATH_ROOM, "%s%s", above, below);

    if (n > 0 && n < PATH_ROOM)
        places->count++;
}

static void places_find(struct places *places)
{
    const char *told = getenv("SOFTNDK_PROFILE_DIR");
    char module[PATH_ROOM];

    places->count = 0;
    if (told && *told && !RED("settings-directory-ignored")) {
        add_place(places, told, "");
        return;
    }
    if (os_module_dir(module, sizeof module) == 0) {
        for (int up = 0; up < 2; up++) { /* from lib and bin, from lib/x86_64-linux-gnu */
            char *last = strrchr(module, '/');

            if (!last)
                break;
            *last = '\0';
            add_place(places, module, "/share/softndk/profiles");
        }
    }
    add_place(places, SOFTNDK_PROFILES_INSTALLED, "");
}

/* name's file in one place. False: there is none; else 0 or what reading it gave. */
static bool place_read(const char *place, const char *name, char *path, char **text, size_t *length,
                       int *rc)
{
    if (snprintf(path, PATH_ROOM, "%s/%s", place, name) >= PATH_ROOM)
        return false;
    *rc = os_file_read(path, PROFILE_TEXT_MAX, text, length);
    return *rc != -ENOENT && *rc != -ENOTDIR;
}

static bool profile_missing(const char *name, const struct places *places, char *error, size_t size)
{
    size_t used = (size_t)snprintf(error, size, "profile %s: there is no such file in", name);

    for (unsigned i = 0; i < places->count && used < size; i++)
        used += (size_t)snprintf(error + used, size - used, "%s %s", i ? "," : "", places->path[i]);
    return false;
}

static bool profile_load(struct options *out, const char *name, char *error, size_t size)
{
    struct places places;
    char path[PATH_ROOM], *text;
    size_t length;
    bool good;
    int rc;

    places_find(&places);
    for (unsigned i = 0; i < places.count; i++) {
        if (!place_read(places.path[i], name, path, &text, &length, &rc))
            continue;
        if (rc < 0) {
            snprintf(error, size, "profile %s: cannot read %s (error %d%s)", name, path, -rc,
                     rc == -EFBIG    ? ", it is too long"
                     : rc == -EINVAL ? ", it is no regular file"
                                     : "");
            return false;
        }
        good = profile_apply(out, path, text, length, error, size);
        free(text);
        return good;
    }
    /* The defaults are there already. */
    return strcmp(name, "default") == 0 || profile_missing(name, &places, error, size);
}

/* ---- putting it together -------------------------------------------------------------------- */

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

/* The profile's name, terminated, and who names it; *name empty: nobody does. False: a bad name. */
static bool profile_choose(const struct settings_layer *layers, unsigned count, const char *text,
                           char name[PROFILE_NAME_MAX + 1], char *error, size_t size)
{
    const char *who = "", *found;
    size_t length = 0;

    name[0] = '\0';
    found = option_profile(text, &length);
    if (!found) {
        who = "SOFTNDK_OPTIONS: ";
        found = option_profile(getenv("SOFTNDK_OPTIONS"), &length);
    }
    if (!found) {
        who = "SOFTNDK_PROFILE: ";
        found = not_empty(getenv("SOFTNDK_PROFILE"));
        while (!found && count > 0)
            found = not_empty(layers[--count].profile);
        if (!found)
            return true;
        length = strlen(found);
    }
    if (!profile_name_is_good(found, length)) {
        snprintf(error, size,
                 "%sprofile: have \"%.*s\", need a name of at most %u letters, digits, '-', '_' "
                 "and '.'",
                 who, length > 40 ? 40 : (int)length, found, PROFILE_NAME_MAX);
        return false;
    }
    memcpy(name, found, length);
    name[length] = '\0';
    return true;
}

static bool environment_apply(struct options *out, char *error, size_t size)
{
    const char *timeouts = getenv("SOFTNDK_TIMEOUTS");
    char what[256];

    if (!options_apply_after_profile(out, getenv("SOFTNDK_OPTIONS"), what, sizeof what)) {
        snprintf(error, size, "SOFTNDK_OPTIONS: %s", what);
        return false;
    }
    if (!timeouts || !*timeouts || strcmp(timeouts, "on") == 0)
        return true;
    if (strcmp(timeouts, "off") == 0) {
        options_timeouts_off(out);
        return true;
    }
    snprintf(error, size, "SOFTNDK_TIMEOUTS: have \"%.40s\", need on or off", timeouts);
    return false;
}

static bool layers_apply(struct options *out, const struct settings_layer *layers, unsigned count,
                         char *error, size_t size)
{
    char what[256];

    for (unsigned i = 0; i < count; i++)
        if (!RED("settings-layer-ignored") &&
            !options_apply(out, layers[i].text, what, sizeof what)) {
            snprintf(error, size, "%s: %s", layers[i].where, what);
            return false;
        }
    return true;
}

bool settings_for_open_in(struct options *out, const struct settings_layer *layers, unsigned count,
                          const char *text, char *error, size_t size)
{
    char name[PROFILE_NAME_MAX + 1];
    struct options options;

    options_defaults(&options);
    if (!profile_choose(layers, count, text, name, error, size) ||
        (name[0] && !profile_load(&options, name, error, size)) ||
        !layers_apply(&options, layers, count, error, size) ||
        !environment_apply(&options, error, size) ||
        !options_apply_after_profile(&options, text, error, size))
        return false;
    if (RED("settings-profile-wins") && name[0] && !profile_load(&options, name, error, size))
        return false;
    *out = options;
    return true;
}

bool settings_for_open(struct options *out, const char *text, char *error, size_t size)
{
    return settings_for_open_in(out, NULL, 0, text, error, size);
}

/* ---- what there is -------------------------------------------------------------------------- */

static void tell_file(const char *path, const char *name,
                      void (*tell)(void *context, const char *name, const char *about,
                                   const char *path),
                      void *context)
{
    char about[200] = "";
    size_t length;
    char *text;

    if (os_file_read(path, PROFILE_TEXT_MAX, &text, &length) == 0) {
        profile_about(text, length, about, sizeof about);
        free(text);
    }
    tell(context, name, about, path);
}

/* Was a profile of this name found in a place before this one? */
static bool told_before(const struct places *places, unsigned place, const char *name)
{
    char path[PATH_ROOM], *text;
    size_t length;
    int rc;

    for (unsigned i = 0; i < place; i++)
        if (place_read(places->path[i], name, path, &text, &length, &rc)) {
            if (rc == 0)
                free(text);
            return true;
        }
    return false;
}

void settings_profiles(void (*tell)(void *context, const char *name, const char *about,
                                    const char *path),
                       void *context)
{
    char names[PROFILES_MAX][OS_FILE_NAME_MAX], path[PATH_ROOM];
    bool standard = false;
    struct places places;

    places_find(&places);
    for (unsigned i = 0; i < places.count; i++) {
        int count = os_dir_list(places.path[i], names, PROFILES_MAX);

        for (int k = 0; k < count; k++) {
            if (!profile_name_is_good(names[k], strlen(names[k])) ||
                told_before(&places, i, names[k]) ||
                snprintf(path, sizeof path, "%s/%s", places.path[i], names[k]) >= PATH_ROOM)
                continue;
            standard = standard || strcmp(names[k], "default") == 0;
            tell_file(path, names[k], tell, context);
        }
    }
    if (!standard)
        tell(context, "default", "the defaults of the options table", NULL);
}
