// SPDX-License-Identifier: MIT
/* What config.c (sections, keys) and config_parts.c (what they hold) share. */
#ifndef SOFTNDK_NDIS_CONFIG_INTERNAL_H
#define SOFTNDK_NDIS_CONFIG_INTERNAL_H

#include "base/config.h"
#include "ndis/config.h"

enum config_kind {
    CONFIG_NOTHING,
    CONFIG_INTERFACE,
    CONFIG_PEERS,
    CONFIG_OPTIONS,
    CONFIG_REGISTRY,
    CONFIG_KEY /* of the registry */
};

/* One text being read. */
struct config_reading {
    struct config *config;
    const char *name; /* the configuration's copy of where */
    enum config_kind kind;
    unsigned at;             /* CONFIG_INTERFACE: which one */
    unsigned interfaces_end; /* how many there were before this text */
    char key[CONFIG_LINE_MAX + 1];
};

struct config_origin config_here(const struct config_reader *r);
bool config_no_memory(struct config_reader *r);

/* Each adds one thing, checked against all that is there. */
bool config_interface_add(struct config_reader *r, struct config_word index);
bool config_address_add(struct config_reader *r, uint32_t index, struct config_word ndk,
                        struct config_word host, bool has_host);
bool config_setting_add(struct config_reader *r, struct config_settings *to, struct config_word key,
                        struct config_word value);
bool config_value_add(struct config_reader *r, struct config_word name, struct config_word value);
/* At the end of a text: host addresses for those without, and what each interface must have. */
bool config_complete(struct config_reader *r);

#endif
