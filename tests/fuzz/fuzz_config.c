// SPDX-License-Identifier: MIT
/*
 * The configuration's text: it is refused with a sentence that names the place, or it is taken and
 * nothing stands in it twice; options and registry values are good; a list of interfaces and peers
 * read after it keeps that.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ndis/config.h"

static void nothing_twice(const struct config *c)
{
    struct options options;
    char error[400];

    for (unsigned i = 0; i < c->interface_count; i++) {
        need(c->interfaces[i].index > 0 && c->interfaces[i].index <= CONFIG_INDEX_MAX);
        need(config_interface_of(c, c->interfaces[i].index) == &c->interfaces[i]);
        need(memchr(c->interfaces[i].alias, '\0', OS_IF_NAME_MAX) != NULL);
        for (unsigned k = 0; k < i; k++)
            need(c->interfaces[i].index != c->interfaces[k].index);
    }
    for (unsigned i = 0; i < c->pair_count; i++) {
        need(c->pairs[i].pair.host.family != OS_FAMILY_NONE && c->pairs[i].pair.host.port == 0);
        need(c->pairs[i].index == CONFIG_PEER || config_interface_of(c, c->pairs[i].index));
        for (unsigned k = 0; k < i; k++)
            need(!os_addr_ip_equal(&c->pairs[i].pair.ndk, &c->pairs[k].pair.ndk) &&
                 !os_addr_ip_equal(&c->pairs[i].pair.host, &c->pairs[k].pair.host));
    }
    options_defaults(&options);
    need(options_apply(&options, c->settings.text, error, sizeof error) ||
         strstr(error, "port_low")); /* what goes together is looked at in the open */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *list = memchr(data, '\0', size); /* behind a zero: the variable */
    size_t length = list ? (size_t)(list - data) : size;
    struct config config;
    char error[600] = "";
    char *text;
    bool good;

    config_init(&config);
    good = config_add_file(&config, "f", (const char *)data, length, error, sizeof error);
    need(good == (error[0] == '\0'));
    need(good || strncmp(error, "f:", 2) == 0);
    if (good && list) {
        text = calloc(1, size - length);
        if (text) {
            memcpy(text, list + 1, size - length - 1);
            good = config_add_interfaces(&config, "v", text, error, sizeof error);
        }
        free(text);
    }
    if (good)
        nothing_twice(&config);
    config_free(&config);
    return 0;
}
