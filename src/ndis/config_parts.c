// SPDX-License-Identifier: MIT
/*
 * The parts of a configuration, each checked against what is there: indexes, addresses, options,
 * registry values. Whatever is given twice is refused with both places. A setting is refused before
 * it is added, so an origin always stands for something that is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/red.h"
#include "ndis/config_internal.h"
#include "nt/registry.h"

#define AUTOMATIC_FIRST 2 /* 127.0.0.1 is the host's own */
#define AUTOMATIC_LAST  254

struct config_origin config_here(const struct config_reader *r)
{
    const struct config_reading *reading = r->context;

    return (struct config_origin){reading->name, r->line};
}

bool config_no_memory(struct config_reader *r)
{
    struct config_reading *reading = r->context;

    reading->config->no_memory = true;
    return config_wrong(r, "no memory");
}

/* Room for one more of size octets, zeroed; NULL without memory. */
static void *grow(void **array, unsigned count, size_t size)
{
    char *all = *array;

    if ((count & (count - 1)) == 0) { /* full: 1, 2, 4, ... */
        all = realloc(*array, (count ? 2 * (size_t)count : 1) * size);
        if (!all)
            return NULL;
        *array = all;
    }
    return memset(all + count * size, 0, size);
}

static char *copy_of(struct config_word word)
{
    char *copy = malloc(word.length + 1);

    if (!copy)
        return NULL;
    memcpy(copy, word.text, word.length);
    copy[word.length] = '\0';
    return copy;
}

/* What a message shows of a word. */
static int shown(struct config_word word)
{
    return word.length > 60 ? 60 : (int)word.length;
}

/* ---- interfaces ----------------------------------------------------------------------------- */

bool config_interface_add(struct config_reader *r, struct config_word word)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    const struct config_interface *other;
    struct config_interface *it;
    void *all = config->interfaces;
    uint64_t index = 0;
    size_t i;

    for (i = 0; i < word.length && word.text[i] >= '0' && word.text[i] <= '9' && index < UINT32_MAX;
         i++)
        index = index * 10 + (uint64_t)(word.text[i] - '0');
    if (i < word.length || i == 0 || index == 0 || index > CONFIG_INDEX_MAX)
        return config_wrong(r, "have interface \"%.*s\", need an index from 1 to %u", shown(word),
                            word.text, CONFIG_INDEX_MAX);
    other = config_interface_of(config, (uint32_t)index);
    if (other && !RED("config-index-twice"))
        return config_wrong(r, "interface %u: is given twice (first in %s:%u)", other->index,
                            other->origin.where, other->origin.line);
    if (config->interface_count == CONFIG_INTERFACES_MAX)
        return config_wrong(r, "too many interfaces (need <= %u)", CONFIG_INTERFACES_MAX);
    it = grow(&all, config->interface_count, sizeof *it);
    config->interfaces = all;
    if (!it)
        return config_no_memory(r);
    it->index = (uint32_t)index;
    it->network_direct = true;
    it->origin = config_here(r);
    reading->at = config->interface_count++;
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static bool is_link_local(const struct os_addr *a)
{
    return a->family == OS_FAMILY_V6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

/* One that an interface can have: no port, no group, nothing that stands for others. */
static bool parse_address(struct config_reader *r, const char *what, struct config_word word,
                          struct os_addr *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[OS_ADDR_TEXT_MAX];
    const char *wrong = NULL;

    if (word.length >= sizeof text || memchr(word.text, '\0', word.length))
        return config_wrong(r, "%s address: have \"%.*s\", need an IPv4 or IPv6 address", what,
                            shown(word), word.text);
    memcpy(text, word.text, word.length);
    text[word.length] = '\0';
    if (os_addr_parse(text, out) < 0)
        wrong = "an IPv4 or IPv6 address";
    else if (out->port || strchr(text, ']') || (out->family == OS_FAMILY_V4 && strchr(text, ':')))
        wrong = "an address without a port";
    else if (os_addr_is_wildcard(out))
        wrong = "one address, not all";
    else if (out->family == OS_FAMILY_V4 ? out->ip[0] >= 224 || out->ip[0] == 0
                                         : out->ip[0] == 0xff)
        wrong = "the address of one interface, not of a group or network";
    else if (out->family == OS_FAMILY_V6 && memcmp(out->ip, mapped, sizeof mapped) == 0)
        wrong = "an IPv4 address written as one";
    return !wrong || config_wrong(r, "%s address: have \"%s\", need %s", what, text, wrong);
}

static bool check_new(struct config_reader *r, const char *what, const struct os_addr *address,
                      bool host)
{
    const struct config_reading *reading = r->context;
    const struct config *config = reading->config;
    char text[OS_ADDR_TEXT_MAX];

    for (unsigned i = 0; i < config->pair_count; i++) {
        const struct config_pair *other = &config->pairs[i];

        if (host && other->pair.host.family == OS_FAMILY_NONE)
            continue;
        if (os_addr_ip_equal(host ? &other->pair.host : &other->pair.ndk, address) &&
            !RED("config-address-twice"))
            return config_wrong(r, "%s address %s: is given twice (first in %s:%u%s)", what,
                                os_addr_text(address, false, text), other->origin.where,
                                other->origin.line,
                                host && other->automatic ? ", automatically" : "");
    }
    return true;
}

bool config_address_add(struct config_reader *r, uint32_t index, struct config_word ndk,
                        struct config_word host, bool has_host)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    struct config_pair new = {.index = index, .automatic = !has_host}, *to;
    void *all = config->pairs;
    unsigned of_interface = 0;

    if (!parse_address(r, "NDK", ndk, &new.pair.ndk) ||
        (has_host && !parse_address(r, "host", host, &new.pair.host)))
        return false;
    if (has_host && new.pair.ndk.family == OS_FAMILY_V4 &&new.pair.host.family != OS_FAMILY_V4)
        return config_wrong(r, "host address: have \"%.*s\", need an IPv4 address for an IPv4 one",
                            shown(host), host.text);
    if (is_link_local(&new.pair.ndk) && index != CONFIG_PEER) {
        if (new.pair.ndk.scope_id &&new.pair.ndk.scope_id != index)
            return config_wrong(r, "NDK address: have zone %u, need the interface's, %u, or none",
                                new.pair.ndk.scope_id, index);
        new.pair.ndk.scope_id = index;
    }
    for (unsigned i = 0; i < config->pair_count; i++)
        of_interface += index != CONFIG_PEER && config->pairs[i].index == index;
    if (of_interface == OS_IF_ADDR_MAX)
        return config_wrong(r, "interface %u has too many addresses (need <= %u)", index,
                            OS_IF_ADDR_MAX);
    if (!check_new(r, "NDK", &new.pair.ndk, false) ||
        (has_host && !check_new(r, "host", &new.pair.host, true)))
        return false;
    new.origin = config_here(r);
    to = grow(&all, config->pair_count, sizeof *to);
    config->pairs = all;
    if (!to)
        return config_no_memory(r);
    *to = new;
    config->pair_count++;
    return true;
}

static bool is_taken(const struct config *config, const struct os_addr *host)
{
    for (unsigned i = 0; i < config->pair_count; i++)
        if (config->pairs[i].pair.host.family != OS_FAMILY_NONE &&
            os_addr_ip_equal(&config->pairs[i].pair.host, host))
            return true;
    return false;
}

bool config_complete(struct config_reader *r)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    struct os_addr next = {.family = OS_FAMILY_V4, .ip = {127, 0, 0, AUTOMATIC_FIRST}};

    for (unsigned i = 0; i < config->pair_count; i++) {
        struct config_pair *pair = &config->pairs[i];

        if (pair->pair.host.family != OS_FAMILY_NONE)
            continue;
        while (next.ip[3] <= AUTOMATIC_LAST && is_taken(config, &next))
            next.ip[3]++;
        r->line = pair->origin.line;
        if (next.ip[3] > AUTOMATIC_LAST)
            return config_wrong(r,
                                "no host address 127.0.0.%u to 127.0.0.%u is left (need one "
                                "written behind =)",
                                AUTOMATIC_FIRST, AUTOMATIC_LAST);
        pair->pair.host = next;
    }
    for (unsigned i = reading->interfaces_end; i < config->interface_count; i++) {
        const struct config_interface *it = &config->interfaces[i];
        bool has = it->host[0] != '\0';

        for (unsigned k = 0; k < config->pair_count; k++)
            has = has || config->pairs[k].index == it->index;
        r->line = it->origin.line;
        if (!has)
            return config_wrong(r, "interface %u: has neither an address nor a host interface",
                                it->index);
    }
    return true;
}

/* ---- options -------------------------------------------------------------------------------- */

static bool profile_add(struct config_reader *r, struct config_settings *to,
                        struct config_word value)
{
    if (to->profile_origin.where)
        return config_wrong(r, "profile: is given twice (first in line %u)",
                            to->profile_origin.line);
    if (!profile_name_is_good(value.text, value.length))
        return config_wrong(r,
                            "profile: have \"%.*s\", need a name of at most %u letters, digits, "
                            "'-', '_' and '.'",
                            shown(value), value.text, PROFILE_NAME_MAX);
    memcpy(to->profile, value.text, value.length);
    to->profile_origin = config_here(r);
    return true;
}

bool config_setting_add(struct config_reader *r, struct config_settings *to, struct config_word key,
                        struct config_word value)
{
    struct options scratch;
    const struct option_info *info;
    char text[300], room[OPTION_TEXT_MAX];
    size_t count, row;
    uint32_t number;

    if (config_word_is(key, "profile"))
        return profile_add(r, to, value);
    options_defaults(&scratch);
    if (!option_set(&scratch, key.text, key.length, value.text, value.length, text, sizeof text))
        return config_wrong(r, "%s", text);
    info = option_find(key.text, key.length);
    row = (size_t)(info - options_table(&count));
    if (!to->origins)
        to->origins = calloc(count, sizeof *to->origins);
    if (!to->origins)
        return config_no_memory(r);
    if (to->origins[row].where && !RED("config-option-twice"))
        return config_wrong(r, "option %s: is given twice (first in line %u)", info->name,
                            to->origins[row].line);
    to->origins[row] = config_here(r);
    memcpy(&number, (const char *)&scratch + info->offset, sizeof number);
    to->used += (size_t)snprintf(to->text + to->used, sizeof to->text - to->used, "%s%s=%s",
                                 to->used ? "," : "", info->name, option_text(info, number, room));
    return to->used < sizeof to->text || config_wrong(r, "too many options");
}

/* ---- registry ------------------------------------------------------------------------------- */

static bool make_value(struct config_reader *r, struct config_word name, struct config_word value,
                       struct config_value *out)
{
    struct config_reading *reading = r->context;
    struct config_word key = {reading->key, strlen(reading->key)};
    char text[CONFIG_LINE_MAX + 1] = "";
    uint32_t type;
    uint8_t *data;
    size_t size;

    if (!config_word_is(name, "@") && !config_text(r, name, text, sizeof text))
        return false;
    out->key = copy_of(key);
    out->name = copy_of((struct config_word){text, strlen(text)});
    out->value = copy_of(value);
    if (!out->key || !out->name || !out->value)
        return config_no_memory(r);
    if (!nt_value_parse(out->value, &type, &data, &size))
        return config_wrong(r,
                            "registry value: have %.*s, need a number, dword:HEX, qword:HEX, "
                            "hex:..., or a text",
                            shown(value), value.text);
    free(data);
    return true;
}

bool config_value_add(struct config_reader *r, struct config_word name, struct config_word value)
{
    struct config_reading *reading = r->context;
    struct config *config = reading->config;
    struct config_value new = {.origin = config_here(r)}, *to = NULL;
    void *all = config->values;
    bool good = make_value(r, name, value, &new);

    for (unsigned i = 0; good && i < config->value_count; i++) {
        const struct config_value *other = &config->values[i];

        if (strcasecmp(other->key, new.key) == 0 && strcasecmp(other->name, new.name) == 0)
            good = config_wrong(r, "registry value \"%.60s\": is given twice (first in line %u)",
                                new.name, other->origin.line);
    }
    if (good) {
        to = grow(&all, config->value_count, sizeof *to);
        config->values = all;
        good = to || config_no_memory(r);
    }
    if (!good) {
        free(new.key);
        free(new.name);
        free(new.value);
        return false;
    }
    *to = new;
    config->value_count++;
    return true;
}
