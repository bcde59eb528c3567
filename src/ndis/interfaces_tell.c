// SPDX-License-Identifier: MIT
/* What configuration is in force, in words: interfaces_tell(). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndis/interfaces.h"

struct telling {
    void (*line)(void *context, const char *text);
    void *context;
};

/* The text, and behind it the place. */
__attribute__((format(printf, 3, 4))) static void
tell(const struct telling *t, const struct config_origin *origin, const char *format, ...)
{
    char text[1200], whole[2000];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (origin && origin->where)
        snprintf(whole, sizeof whole, "%-56s %s:%u", text, origin->where, origin->line);
    else
        snprintf(whole, sizeof whole, "%s", text);
    t->line(t->context, whole);
}

/* Options in the order of the table. */
static void tell_settings(const struct telling *t, const struct config_settings *s,
                          const char *before)
{
    size_t count;
    const struct option_info *table = options_table(&count);

    if (s->profile[0])
        tell(t, &s->profile_origin, "%sprofile = %s", before, s->profile);
    for (size_t i = 0; s->origins && i < count; i++) {
        char key[80];
        const char *at = s->text;
        size_t length = (size_t)snprintf(key, sizeof key, "%s=", table[i].name);

        if (!s->origins[i].where)
            continue;
        while (at && strncmp(at, key, length) != 0) {
            at = strchr(at, ',');
            at = at ? at + 1 : NULL;
        }
        if (at)
            tell(t, &s->origins[i], "%s%s = %.*s", before, table[i].name,
                 (int)strcspn(at + length, ","), at + length);
    }
}

static void tell_pair(const struct telling *t, const struct config_pair *p, const char *before)
{
    char ndk[OS_ADDR_TEXT_MAX], host[OS_ADDR_TEXT_MAX];

    tell(t, &p->origin, "%s%s = %s%s", before, os_addr_text(&p->pair.ndk, false, ndk),
         os_addr_text(&p->pair.host, false, host), p->automatic ? " (automatic)" : "");
}

static void tell_configured(const struct telling *t, const struct config *config,
                            const struct config_interface *it, const struct os_interface *now)
{
    char host[OS_IF_NAME_MAX];

    interfaces_host(now, host);
    tell(t, &it->origin, "interface %u \"%s\" on %s", it->index, now->name,
         host[0]       ? host
         : it->host[0] ? "an interface that is not here"
                       : "an address that is not here");
    if (it->alias[0])
        tell(t, &it->alias_origin, "    alias = %s", it->alias);
    if (it->host[0])
        tell(t, &it->host_origin, "    host = %s", it->host);
    if (it->mtu)
        tell(t, &it->mtu_origin, "    mtu = %u", it->mtu);
    if (it->mac_origin.where)
        tell(t, &it->mac_origin, "    mac = %02x:%02x:%02x:%02x:%02x:%02x", it->mac[0], it->mac[1],
             it->mac[2], it->mac[3], it->mac[4], it->mac[5]);
    if (it->network_direct_origin.where)
        tell(t, &it->network_direct_origin, "    *NetworkDirect = %d", it->network_direct);
    for (unsigned i = 0; i < config->pair_count; i++)
        if (config->pairs[i].index == it->index)
            tell_pair(t, &config->pairs[i], "    address ");
    tell_settings(t, &it->settings, "    ");
}

static void tell_variables(const struct telling *t)
{
    static const char *const names[] = {"SOFTNDK_CONFIG", "SOFTNDK_INTERFACES", "SOFTNDK_PEERS"};
    bool any = false;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);

        if (!value || !*value)
            continue;
        tell(t, NULL, "%s=%s", names[i], value);
        any = true;
    }
    if (!any)
        tell(t, NULL,
             "no configuration: SOFTNDK_CONFIG, SOFTNDK_INTERFACES and SOFTNDK_PEERS are "
             "not set");
}

void interfaces_tell(void (*line)(void *context, const char *text), void *context)
{
    const struct telling t = {line, context};
    const struct config *config = interfaces_config();
    int room = interfaces_list(NULL, 0), count;
    struct os_interface *list = room > 0 ? calloc((size_t)room, sizeof *list) : NULL;

    tell_variables(&t);
    count = list ? interfaces_list(list, (unsigned)room) : 0;
    for (int i = 0; config && i < count && i < room; i++) {
        const struct config_interface *it = config_interface_of(config, list[i].index);

        if (it)
            tell_configured(&t, config, it, &list[i]);
        else
            tell(&t, NULL, "interface %u \"%s\", the host's own", list[i].index, list[i].name);
    }
    for (unsigned i = 0; config && i < config->pair_count; i++)
        if (config->pairs[i].index == CONFIG_PEER)
            tell_pair(&t, &config->pairs[i], "peer ");
    if (config) {
        tell_settings(&t, &config->settings, "option ");
        if (config->registry)
            tell(&t, &config->registry_origin, "registry file %s", config->registry);
        for (unsigned i = 0; i < config->value_count; i++)
            tell(&t, &config->values[i].origin, "registry %s: \"%s\" = %s", config->values[i].key,
                 config->values[i].name, config->values[i].value);
    }
    free(list);
}
