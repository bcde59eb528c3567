// SPDX-License-Identifier: MIT
/* See interfaces.h. */
#include "ndis/interfaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "os/os_file.h"
#include "provider/address.h"
#include "provider/settings.h"

#define HOST_INTERFACES_MAX 256

/* ---- the reading ---------------------------------------------------------------------------- */

enum state { UNREAD, GOOD, WRONG };

static os_mutex lock = OS_MUTEX_INITIALIZER;
static enum state state; /* written under the lock; nothing below changes once it is not UNREAD */
static struct config config; /* GOOD */
static char sentence[1024];  /* WRONG */

static bool read_file(struct config *out, const char *path)
{
    size_t length;
    char *text;
    bool good;
    int rc = os_file_read(path, CONFIG_TEXT_MAX, &text, &length);

    out->no_memory = rc == -ENOMEM;
    if (rc < 0) {
        snprintf(sentence, sizeof sentence, "SOFTNDK_CONFIG: cannot read \"%.500s\" (%s)", path,
                 rc == -EFBIG    ? "it is too long"
                 : rc == -EINVAL ? "it is no regular file"
                                 : strerror(-rc));
        return false;
    }
    good = config_add_file(out, path, text, length, sentence, sizeof sentence);
    free(text);
    return good;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static bool lay_down_map(struct config *from)
{
    struct address_pair *pairs = from->pair_count ? calloc(from->pair_count, sizeof *pairs) : NULL;
    bool good = pairs || from->pair_count == 0;

    for (unsigned i = 0; good && i < from->pair_count; i++)
        pairs[i] = from->pairs[i].pair;
    good = good && address_map_set(pairs, from->pair_count);
    free(pairs);
    if (!good)
        snprintf(sentence, sizeof sentence, "no memory for the address map");
    from->no_memory = !good;
    return good;
}

/* Lock held. */
static void read_all(void)
{
    const char *file = variable("SOFTNDK_CONFIG");
    const char *interfaces = variable("SOFTNDK_INTERFACES"), *peers = variable("SOFTNDK_PEERS");
    struct config new;
    bool good;

    config_init(&new);
    good = (!file || read_file(&new, file)) &&
           (!interfaces || config_add_interfaces(&new, "SOFTNDK_INTERFACES", interfaces, sentence,
                                                 sizeof sentence)) &&
           (!peers || config_add_peers(&new, "SOFTNDK_PEERS", peers, sentence, sizeof sentence));
    if ((good || RED("config-half-applied")) && lay_down_map(&new)) {
        config = new;
        __atomic_store_n(&state, GOOD, __ATOMIC_RELEASE);
        return;
    }
    good = new.no_memory; /* tried again at the next question */
    config_free(&new);
    log_error("%s", sentence);
    if (!good)
        __atomic_store_n(&state, WRONG, __ATOMIC_RELEASE);
}

static bool ready(void)
{
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == UNREAD) {
        os_mutex_lock(&lock);
        if (state == UNREAD)
            read_all();
        os_mutex_unlock(&lock);
    }
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == GOOD;
}

bool interfaces_ready(char *error, size_t size)
{
    if (ready())
        return true;
    os_mutex_lock(&lock); /* without memory it may be read again meanwhile */
    snprintf(error, size, "%s", sentence);
    os_mutex_unlock(&lock);
    return false;
}

const struct config *interfaces_config(void)
{
    return ready() ? &config : NULL;
}

void interfaces_forget(void)
{
    os_mutex_lock(&lock);
    if (state == GOOD)
        config_free(&config);
    (void)address_map_set(NULL, 0);
    __atomic_store_n(&state, UNREAD, __ATOMIC_RELEASE);
    os_mutex_unlock(&lock);
}

/* ---- the host's interfaces ------------------------------------------------------------------ */

/* To be freed; *count of them, or *rc < 0. */
static struct os_interface *host_interfaces(unsigned *count, int *rc)
{
    struct os_interface *list = calloc(HOST_INTERFACES_MAX, sizeof *list);

    *rc = list ? os_interfaces(list, HOST_INTERFACES_MAX) : -ENOMEM;
    if (*rc < 0) {
        free(list);
        return NULL;
    }
    *count = *rc > HOST_INTERFACES_MAX ? HOST_INTERFACES_MAX : (unsigned)*rc;
    return list;
}

static bool has_address(const struct os_interface *it, const struct os_addr *host)
{
    if (it->loopback && host->family == OS_FAMILY_V4 && host->ip[0] == 127)
        return true;
    for (unsigned i = 0; i < it->addr_count; i++) {
        struct os_addr own = it->addr[i];

        if (host->scope_id == 0)
            own.scope_id = 0;
        if (os_addr_ip_equal(&own, host))
            return true;
    }
    return false;
}

/* What a configured interface stands over; NULL: it is not here. */
static const struct os_interface *below(const struct config_interface *it,
                                        const struct os_interface *hosts, unsigned count)
{
    for (unsigned h = 0; it->host[0] && h < count; h++)
        if (strcmp(hosts[h].name, it->host) == 0)
            return &hosts[h];
    if (it->host[0])
        return NULL;
    for (unsigned i = 0; i < config.pair_count; i++)
        for (unsigned h = 0; config.pairs[i].index == it->index && h < count; h++)
            if (has_address(&hosts[h], &config.pairs[i].pair.host))
                return &hosts[h];
    return NULL;
}

/* The host's addresses that are nobody else's, under the interface's index. */
static void take_addresses(struct os_interface *to, const struct os_interface *from)
{
    struct os_addr other;

    to->addr_count = 0;
    for (unsigned i = 0; i < from->addr_count; i++) {
        struct os_addr address = from->addr[i];

        if (address_map_ndk(&address, &other) || address_map_host(&address, &other))
            continue;
        if (address.scope_id == from->host_index)
            address.scope_id = to->index;
        to->addr[to->addr_count++] = address;
    }
}

static void fill_configured(struct os_interface *to, const struct config_interface *it,
                            const struct os_interface *host)
{
    memset(to, 0, sizeof *to);
    to->index = it->index;
    to->host_index = host ? host->index : 0;
    if (it->alias[0])
        memcpy(to->name, it->alias, sizeof to->name);
    else
        snprintf(to->name, sizeof to->name, "if%u", it->index);
    to->mtu = it->mtu ? it->mtu : host ? host->mtu : 1500;
    if (it->mac_origin.where)
        memcpy(to->mac, it->mac, sizeof to->mac);
    else if (host)
        memcpy(to->mac, host->mac, sizeof to->mac);
    to->up = host && host->up;
    for (unsigned i = 0; i < config.pair_count; i++)
        if (config.pairs[i].index == it->index)
            to->addr[to->addr_count++] = config.pairs[i].pair.ndk;
    if (to->addr_count == 0 && host) {
        to->loopback = host->loopback;
        take_addresses(to, host);
    }
}

/* Does a configured interface stand in this one's place? */
static bool is_replaced(const struct os_interface *host, const struct os_interface *configured)
{
    for (unsigned i = 0; i < config.interface_count; i++) {
        const struct config_interface *it = &config.interfaces[i];

        if (it->index == host->index || strcmp(configured[i].name, host->name) == 0 ||
            (!host->loopback && strcmp(it->host, host->name) == 0))
            return true;
    }
    return false;
}

static int by_index(const void *a, const void *b)
{
    const struct os_interface *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

int interfaces_list(struct os_interface *out, unsigned max)
{
    struct os_interface *hosts, *all;
    unsigned host_count, count = 0;
    int rc;

    if (!ready())
        return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == WRONG ? -EINVAL : -ENOMEM;
    hosts = host_interfaces(&host_count, &rc);
    if (!hosts)
        return rc;
    all = calloc(config.interface_count + host_count + 1, sizeof *all);
    if (!all) {
        free(hosts);
        return -ENOMEM;
    }
    for (; count < config.interface_count; count++)
        fill_configured(&all[count], &config.interfaces[count],
                        below(&config.interfaces[count], hosts, host_count));
    for (unsigned h = 0; h < host_count; h++) {
        if (is_replaced(&hosts[h], all))
            continue;
        all[count] = hosts[h];
        take_addresses(&all[count++], &hosts[h]);
    }
    qsort(all, config.interface_count, sizeof *all, by_index);
    if (max)
        memcpy(out, all, (count < max ? count : max) * sizeof *all);
    free(all);
    free(hosts);
    return (int)count;
}

int interfaces_find(uint32_t index, struct os_interface *out)
{
    struct os_interface *list = calloc(HOST_INTERFACES_MAX, sizeof *list);
    int n = list ? interfaces_list(list, HOST_INTERFACES_MAX) : -ENOMEM;
    int found = n < 0 ? n : 0;

    for (int i = 0; i < n && i < HOST_INTERFACES_MAX && !found; i++)
        if (list[i].index == index) {
            *out = list[i];
            found = 1;
        }
    free(list);
    return found;
}

void interfaces_host(const struct os_interface *interface, char name[OS_IF_NAME_MAX])
{
    unsigned count = 0;
    int rc;
    struct os_interface *hosts = host_interfaces(&count, &rc);

    name[0] = '\0';
    for (unsigned h = 0; hosts && h < count; h++)
        if (hosts[h].index == interface->host_index)
            memcpy(name, hosts[h].name, OS_IF_NAME_MAX);
    free(hosts);
}

/* ---- options -------------------------------------------------------------------------------- */

bool interfaces_settings(uint32_t index, const char *text, struct options *out, char *error,
                         size_t size)
{
    const struct config_interface *it;
    struct settings_layer layers[2];
    unsigned count = 0;
    char where[2][CONFIG_ORIGIN_MAX];

    if (!interfaces_ready(error, size))
        return false;
    snprintf(where[0], sizeof where[0], "%s: [options]",
             config.name_count ? config.names[0] : "SOFTNDK_CONFIG");
    layers[count++] =
        (struct settings_layer){where[0], config.settings.profile, config.settings.text};
    it = config_interface_of(&config, index);
    if (it) {
        snprintf(where[1], sizeof where[1], "%s:%u: [interface %u]", it->origin.where,
                 it->origin.line, index);
        layers[count++] =
            (struct settings_layer){where[1], it->settings.profile, it->settings.text};
    }
    return settings_for_open_in(out, layers, count, text, error, size);
}

bool interfaces_network_direct(uint32_t index)
{
    const struct config_interface *it = ready() ? config_interface_of(&config, index) : NULL;

    return !it || it->network_direct || RED("ndis-keyword-ignored");
}

/* ---- routes --------------------------------------------------------------------------------- */

static const struct os_interface *owner(const struct os_interface *list, unsigned count,
                                        const struct os_addr *ndk)
{
    for (unsigned i = 0; i < count; i++)
        if (address_is_of(&list[i], ndk))
            return &list[i];
    return NULL;
}

/* A configured interface over the host's `host_index` with an address of the peer's family. */
static const struct os_interface *configured_over(const struct os_interface *list, unsigned count,
                                                  uint32_t host_index, const struct os_addr *peer,
                                                  struct os_addr *source)
{
    for (unsigned i = 0; i < count; i++) {
        if (!config_interface_of(&config, list[i].index) || list[i].host_index != host_index)
            continue;
        for (unsigned k = 0; k < list[i].addr_count; k++)
            if (list[i].addr[k].family == peer->family) {
                *source = list[i].addr[k];
                return &list[i];
            }
    }
    return NULL;
}

/* The index of the host's interface that has this address of the host; 0: none. */
static uint32_t host_index_of(const struct os_addr *host)
{
    unsigned count = 0;
    uint32_t index = 0;
    int rc;
    struct os_interface *hosts = host_interfaces(&count, &rc);

    for (unsigned h = 0; hosts && h < count && !index; h++)
        if (has_address(&hosts[h], host))
            index = hosts[h].index;
    free(hosts);
    return index;
}

const struct os_interface *interfaces_route(const struct os_interface *list, unsigned count,
                                            const struct os_addr *peer, struct os_addr *source,
                                            int *rc)
{
    struct os_addr host = *peer, from;
    const struct os_interface *found, *better = NULL;
    bool mapped = address_map_host(peer, &host);

    *rc = 0;
    /* An address of this host: as the host does, from the interface that has it. */
    if (mapped && (found = owner(list, count, peer)) != NULL && found->up) {
        *source = *peer;
        source->port = 0;
        return found;
    }
    *rc = os_route_source(&host, &from);
    if (*rc < 0)
        return NULL;
    if (!address_map_ndk(&from, source))
        *source = from;
    found = owner(list, count, source);
    /* The host would go from an address that is not one of ours, perhaps to one that is. */
    if (!found || (mapped && !config_interface_of(&config, found->index)))
        better = configured_over(list, count, host_index_of(&from), peer, source);
    return better ? better : found;
}

/* ---- for the rooms below -------------------------------------------------------------------- */

static const char *registry_file(void)
{
    return ready() ? config.registry : NULL;
}

static void registry_values(void (*set)(const char *key, const char *name, const char *value))
{
    for (unsigned i = 0; ready() && i < config.value_count; i++)
        set(config.values[i].key, config.values[i].name, config.values[i].value);
}

/* A driver may ask for an interface or a registry value before it opens anything. */
__attribute__((constructor)) static void begin(void)
{
    static const struct nt_registry_source registry = {registry_file, registry_values};

    nt_interface_source(interfaces_list);
    nt_registry_source(&registry);
}
