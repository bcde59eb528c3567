// SPDX-License-Identifier: MIT
/*
 * What a configuration says (docs/configuration.md): the NDK interfaces, the addresses of peers,
 * options, registry values. Read from a text of SOFTNDK_CONFIG's form and from the two environment
 * variables for the simple cases; each part keeps the place it came from.
 *
 *     [interface 12]            [peer]                     [options]
 *     alias = "Ethernet 2"      10.0.0.9 = 192.168.7.9     crc = off
 *     address = 10.0.0.1
 *
 * Pure but for its memory: nothing of the host is looked at. What is made of it is
 * ndis/interfaces.h. No lock.
 */
#ifndef SOFTNDK_NDIS_CONFIG_H
#define SOFTNDK_NDIS_CONFIG_H

#include "base/options.h"
#include "base/profile.h"
#include "provider/address.h"

#define CONFIG_TEXT_MAX       (1u << 20) /* octets */
#define CONFIG_LINE_MAX       4096       /* octets */
#define CONFIG_INTERFACES_MAX 64
#define CONFIG_INDEX_MAX      0xffffffu /* a LUID has room for so much */
#define CONFIG_SETTINGS_MAX   4096      /* octets of one section's options as text */
#define CONFIG_ORIGIN_MAX     600
#define CONFIG_TEXTS_MAX      8 /* files and variables */

/* Where something was said. The name is the configuration's. */
struct config_origin {
    const char *where; /* a file's name or a variable's */
    unsigned line;     /* of the file, or the item of the variable */
};

/* Options of one section, in the form of options_apply_after_profile(). */
struct config_settings {
    char profile[PROFILE_NAME_MAX + 1]; /* empty: none */
    struct config_origin profile_origin;
    char text[CONFIG_SETTINGS_MAX];
    size_t used;
    struct config_origin *origins; /* of the table's rows; where NULL: not set here */
};

struct config_interface {
    struct config_origin origin;
    uint32_t index;
    char alias[OS_IF_NAME_MAX]; /* empty: none given */
    char host[OS_IF_NAME_MAX];  /* empty: found by the addresses */
    struct config_origin alias_origin, host_origin, mtu_origin, mac_origin, network_direct_origin;
    uint32_t mtu; /* octets; 0: the host's */
    uint8_t mac[6];
    bool network_direct; /* the keyword *NetworkDirect; true unless it is given as 0 */
    struct config_settings settings;
};

#define CONFIG_PEER UINT32_MAX

struct config_pair {
    struct config_origin origin;
    struct address_pair pair;
    uint32_t index; /* of the interface, or CONFIG_PEER */
    bool automatic; /* the host address was chosen here */
};

struct config_value {
    struct config_origin origin;
    char *key, *name, *value;
};

struct config {
    struct config_interface *interfaces; /* in the order of the text */
    struct config_pair *pairs;
    struct config_value *values;
    unsigned interface_count, pair_count, value_count;
    struct config_settings settings; /* of [options] */
    char *registry;                  /* the registry's file, NULL: none given */
    struct config_origin registry_origin;
    bool no_memory; /* a failure was for want of it: nothing is wrong with the text */
    char *names[CONFIG_TEXTS_MAX];
    unsigned name_count;
};

/* Empty. */
void config_init(struct config *config);
void config_free(struct config *config);

/*
 * Adds what a text says; where is its file's name, below whose directory a registry file is. False:
 * error[size] says "WHERE:LINE: what is wrong"; the configuration is then good for config_free()
 * only.
 */
bool config_add_file(struct config *config, const char *where, const char *text, size_t length,
                     char *error, size_t size);
/* "INDEX=ADDRESS[=HOST]" and "ADDRESS=HOST", with commas or blanks between: SOFTNDK_INTERFACES and
 * SOFTNDK_PEERS. Messages call them where. */
bool config_add_interfaces(struct config *config, const char *where, const char *text, char *error,
                           size_t size);
bool config_add_peers(struct config *config, const char *where, const char *text, char *error,
                      size_t size);

const struct config_interface *config_interface_of(const struct config *config, uint32_t index);

#endif
