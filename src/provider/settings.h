// SPDX-License-Identifier: MIT
/*
 * What an adapter is opened with: the options of base/options.h, put together from all that may set
 * them. Later ones win:
 *
 *   the defaults   the options table, compiled in; no file is needed
 *   a profile      named by profile=NAME in the open's text, else in SOFTNDK_OPTIONS, else by
 *                  SOFTNDK_PROFILE, else by a layer, the last first; none of them: no profile
 *   layers         what a configuration says, in their order
 *   environment    SOFTNDK_OPTIONS, then SOFTNDK_TIMEOUTS=off
 *   the text       given at the open
 *
 * A profile is a file NAME in the directory SOFTNDK_PROFILE_DIR if that is set; otherwise in
 * share/softndk/profiles beside the directory of the library (the program, if that holds the
 * library), as it stands in the build tree and where it was installed or moved to, or in the one
 * that was configured. `default` is known without a file: the defaults.
 *
 * Called by the doors when an adapter is opened, at PASSIVE_LEVEL. No state, no lock.
 */
#ifndef SOFTNDK_PROVIDER_SETTINGS_H
#define SOFTNDK_PROVIDER_SETTINGS_H

#include "base/options.h"
#include "base/profile.h"

/* text: "key=value[,...]" or NULL. False with a sentence in error[size] that begins with the place
 * that is wrong; *out is then unchanged. */
bool settings_for_open(struct options *out, const char *text, char *error, size_t size);

/* What a configuration says. Nothing of it need be there: NULL or empty. */
struct settings_layer {
    const char *where;   /* what sentences call it */
    const char *profile; /* a good name */
    const char *text;    /* "key=value[,...]", without a profile */
};
bool settings_for_open_in(struct options *out, const struct settings_layer *layers, unsigned count,
                          const char *text, char *error, size_t size);

/* Calls tell() for each profile that settings_for_open() would find, in the order of the names
 * within a directory. path: its file, or NULL for what is compiled in. */
void settings_profiles(void (*tell)(void *context, const char *name, const char *about,
                                    const char *path),
                       void *context);

#endif
