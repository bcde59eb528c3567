// SPDX-License-Identifier: MIT
/* See config.h: sections and keys. What they hold is added by config_parts.c. */
#include "ndis/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/red.h"
#include "ndis/config_internal.h"

/* ---- the object ----------------------------------------------------------------------------- */

void config_init(struct config *config)
{
    memset(config, 0, sizeof *config);
}

void config_free(struct config *config)
{
    for (unsigned i = 0; i < config->interface_count; i++)
        free(config->interfaces[i].settings.origins);
    for (unsigned i = 0; i < config->value_count; i++) {
        free(config->values[i].key);
        free(config->values[i].name);
        free(config->values[i].value);
    }
    for (unsigned i = 0; i < config->name_count; i++)
        free(config->names[i]);
    free(config->settings.origins);
    free(config->interfaces);
    free(config->pairs);
    free(config->values);
    free(config->registry);
    config_init(config);
}

const struct config_interface *config_interface_of(const struct config *config, uint32_t index)
{
    for (unsigned i = 0; i < config->interface_count; i++)
        if (config->interfaces[i].index == index)
            return &config->interfaces[i];
    return NULL;
}

/* ---- keys of [interface N] ------------------------------------------------------------------ */

/* Text for one field that is given once. */
static bool take_text(struct config_reader *r, const char *key, struct config_word value, char *to,
                      size_t size, struct config_origin *origin)
{
    if (origin->where && !RED("config-key-twice"))
        return config_wrong(r, "%s: is given twice (first in line %u)", key, origin->line);
    *origin = config_here(r);
    if (!config_text(r, value, to, size))
        return false;
    return *to || config_wrong(r, "%s: have \"\", need a name", key);
}

static bool take_alias(struct config_reader *r, struct config_interface *it,
                       struct config_word value)
{
    struct config_reading *reading = r->context;
    const struct config *config = reading->config;

    if (!take_text(r, "alias", value, it->alias, sizeof it->alias, &it->alias_origin))
        return false;
    for (unsigned i = 0; i < config->interface_count; i++) {
        const struct config_interface *other = &config->interfaces[i];

        if (other != it && strcasecmp(other->alias, it->alias) == 0)
            return config_wrong(r, "alias \"%s\": interface %u has it (%s:%u)", it->alias,
                                other->index, other->alias_origin.where, other->alias_origin.line);
    }
    return true;
}

static bool take_mtu(struct config_reader *r, struct config_interface *it, struct config_word value)
{
    char text[16], *end;
    unsigned long mtu;

    if (value.length >= sizeof text)
        value.length = sizeof text - 1;
    if (!take_text(r, "mtu", value, text, sizeof text, &it->mtu_origin))
        return false;
    mtu = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || mtu < 576 || mtu > 65536)
        return config_wrong(r, "mtu: have \"%s\", need a number from 576 to 65536, octets", text);
    it->mtu = (uint32_t)mtu;
    return true;
}

static bool take_mac(struct config_reader *r, struct config_interface *it, struct config_word value)
{
    static const char digits[] = "0123456789abcdef";
    char text[24];

    if (!take_text(r, "mac", value, text, sizeof text, &it->mac_origin))
        return false;
    for (unsigned i = 0; i < 18; i++) {
        char c = text[i], lower = (char)(c >= 'A' && c <= 'F' ? c | 0x20 : c);
        const char *digit = c ? strchr(digits, lower) : NULL;

        if (i == 17 ? c != '\0' : i % 3 == 2 ? c != ':' && c != '-' : !digit)
            return config_wrong(r, "mac: have \"%s\", need six octets, 02:00:00:00:00:0c", text);
        if (digit)
            it->mac[i / 3] = (uint8_t)(it->mac[i / 3] << 4 | (digit - digits));
    }
    return true;
}

static bool take_network_direct(struct config_reader *r, struct config_interface *it,
                                struct config_word value)
{
    char text[8];

    if (value.length >= sizeof text)
        value.length = sizeof text - 1;
    if (!take_text(r, "*NetworkDirect", value, text, sizeof text, &it->network_direct_origin))
        return false;
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return config_wrong(r, "*NetworkDirect: have \"%s\", need 0 (no NDK) or 1", text);
    it->network_direct = text[0] == '1';
    return true;
}

static bool interface_setting(struct config_reader *r, struct config_word key,
                              struct config_word value)
{
    struct config_reading *reading = r->context;
    struct config_interface *it = &reading->config->interfaces[reading->at];
    struct config_word ndk = value, host = {0};

    if (config_word_is(key, "alias"))
        return take_alias(r, it, value);
    if (config_word_is(key, "host"))
        return take_text(r, "host", value, it->host, sizeof it->host, &it->host_origin);
    if (config_word_is(key, "mtu"))
        return take_mtu(r, it, value);
    if (config_word_is(key, "mac"))
        return take_mac(r, it, value);
    /* Windows tells no case apart in its keywords. */
    if (key.length == strlen("*NetworkDirect") &&
        strncasecmp(key.text, "*NetworkDirect", key.length) == 0)
        return take_network_direct(r, it, value);
    if (config_word_is(key, "address")) {
        bool has_host = config_split(value, '=', &ndk, &host);

        return config_address_add(r, it->index, ndk, host, has_host);
    }
    if (!config_word_is(key, "profile") && !option_find(key.text, key.length) &&
        !RED("config-unknown-key-passed"))
        return config_wrong(r,
                            "unknown key \"%.*s\" (need alias, host, address, mtu, mac, "
                            "*NetworkDirect, profile, or an option: ndkinfo --options)",
                            key.length > 60 ? 60 : (int)key.length, key.text);
    return config_setting_add(r, &it->settings, key, value);
}

/* ---- [registry] ----------------------------------------------------------------------------- */

static bool registry_setting(struct config_reader *r, struct config_word key,
                             struct config_word value)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    const char *slash = strrchr(reading->name, '/');
    char path[CONFIG_LINE_MAX + 1];
    size_t above;

    if (!config_word_is(key, "file"))
        return config_wrong(r, "unknown key \"%.*s\" (need file)",
                            key.length > 60 ? 60 : (int)key.length, key.text);
    if (!take_text(r, "file", value, path, sizeof path, &config->registry_origin))
        return false;
    above = path[0] == '/' || !slash ? 0 : (size_t)(slash - reading->name) + 1;
    config->registry = malloc(above + strlen(path) + 1);
    if (!config->registry)
        return config_no_memory(r);
    memcpy(config->registry, reading->name, above);
    memcpy(config->registry + above, path, strlen(path) + 1);
    return true;
}

/* ---- sections ------------------------------------------------------------------------------- */

static bool begins(struct config_word word, const char *with)
{
    return word.length >= strlen(with) && strncasecmp(word.text, with, strlen(with)) == 0;
}

static bool section(struct config_reader *r, struct config_word name)
{
    struct config_reading *reading = r->context;

    if (config_word_is(name, "peer")) {
        reading->kind = CONFIG_PEERS;
    } else if (config_word_is(name, "options")) {
        reading->kind = CONFIG_OPTIONS;
    } else if (config_word_is(name, "registry")) {
        reading->kind = CONFIG_REGISTRY;
    } else if (begins(name, "interface ")) {
        struct config_word index = {name.text + 10, name.length - 10};

        reading->kind = CONFIG_INTERFACE;
        return config_interface_add(r, index);
    } else if (begins(name, "HKEY_LOCAL_MACHINE\\") || begins(name, "HKEY_USERS\\") ||
               begins(name, "\\Registry\\")) {
        reading->kind = CONFIG_KEY;
        memcpy(reading->key, name.text, name.length);
        reading->key[name.length] = '\0';
        if (strstr(reading->key, "\\\\") || reading->key[name.length - 1] == '\\')
            return config_wrong(r, "have [%s], need a registry key without empty names",
                                reading->key);
    } else {
        return config_wrong(r,
                            "unknown section [%.*s] (need interface INDEX, peer, options, "
                            "registry, or a registry key, HKEY_LOCAL_MACHINE\\...)",
                            name.length > 60 ? 60 : (int)name.length, name.text);
    }
    return true;
}

static bool setting(struct config_reader *r, struct config_word key, struct config_word value)
{
    struct config_reading *reading = r->context;

    switch (reading->kind) {
    case CONFIG_INTERFACE:
        return interface_setting(r, key, value);
    case CONFIG_PEERS:
        return config_address_add(r, CONFIG_PEER, key, value, true);
    case CONFIG_OPTIONS:
        return config_setting_add(r, &reading->config->settings, key, value);
    case CONFIG_REGISTRY:
        return registry_setting(r, key, value);
    case CONFIG_KEY:
        return config_value_add(r, key, value);
    case CONFIG_NOTHING:
        break;
    }
    return config_wrong(r, "have \"%.*s\" before any [section]",
                        key.length > 60 ? 60 : (int)key.length, key.text);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* A reader that adds to config. The place's name outlives the text. */
static bool begin(struct config_reader *r, struct config_reading *reading, struct config *config,
                  const char *where, char *error, size_t size)
{
    char *name = config->name_count < CONFIG_TEXTS_MAX ? strdup(where) : NULL;

    *r = (struct config_reader){.where = where,
                                .text_max = CONFIG_TEXT_MAX,
                                .line_max = CONFIG_LINE_MAX,
                                .quotes = true,
                                .section = section,
                                .setting = setting,
                                .context = reading,
                                .error = error,
                                .size = size};
    memset(reading, 0, sizeof *reading);
    reading->config = config;
    reading->interfaces_end = config->interface_count;
    if (!name)
        return config_no_memory(r);
    config->names[config->name_count++] = name;
    reading->name = name;
    return true;
}

bool config_add_file(struct config *config, const char *where, const char *text, size_t length,
                     char *error, size_t size)
{
    struct config_reading reading;
    struct config_reader r;

    return begin(&r, &reading, config, where, error, size) && config_read(&r, text, length) &&
           config_complete(&r);
}

/* The next word of a list; false behind the last. */
static bool next_item(const char **at, struct config_word *item)
{
    static const char between[] = ", \t\n;";

    *at += strspn(*at, between);
    item->text = *at;
    item->length = strcspn(*at, between);
    *at += item->length;
    return item->length != 0;
}

static bool add_item(struct config_reader *r, struct config_word item, bool peer)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    struct config_word left, rest, host = {0};
    const struct config_interface *it;
    bool has_host = true;

    if (!config_split(item, '=', &left, &rest))
        return config_wrong(r, "have \"%.*s\", need %s", item.length > 60 ? 60 : (int)item.length,
                            item.text, peer ? "ADDRESS=HOST" : "INDEX=ADDRESS[=HOST]");
    if (peer)
        return config_address_add(r, CONFIG_PEER, left, rest, true);
    /* A further address of an interface that this list began. */
    for (unsigned i = reading->interfaces_end; i < config->interface_count; i++) {
        char index[12];

        snprintf(index, sizeof index, "%u", config->interfaces[i].index);
        if (config_word_is(left, index))
            reading->at = i, reading->kind = CONFIG_INTERFACE;
    }
    if (reading->kind != CONFIG_INTERFACE && !config_interface_add(r, left))
        return false;
    reading->kind = CONFIG_NOTHING;
    it = &config->interfaces[reading->at];
    has_host = config_split(rest, '=', &rest, &host);
    return config_address_add(r, it->index, rest, host, has_host);
}

static bool add_list(struct config *config, const char *where, const char *text, bool peers,
                     char *error, size_t size)
{
    struct config_reading reading;
    struct config_reader r;
    struct config_word item;

    if (!begin(&r, &reading, config, where, error, size))
        return false;
    while (next_item(&text, &item)) {
        r.line++;
        for (size_t i = 0; i < item.length; i++)
            if (item.text[i] < 0x21 || item.text[i] > 0x7e)
                return config_wrong(&r, "octet 0x%02x (need printable ASCII)",
                                    (unsigned char)item.text[i]);
        if (!add_item(&r, item, peers))
            return false;
    }
    return config_complete(&r);
}

bool config_add_interfaces(struct config *config, const char *where, const char *text, char *error,
                           size_t size)
{
    return add_list(config, where, text, false, error, size);
}

bool config_add_peers(struct config *config, const char *where, const char *text, char *error,
                      size_t size)
{
    return add_list(config, where, text, true, error, size);
}
