// SPDX-License-Identifier: MIT
/*
 * The host's interfaces and its choice of a source address. A fresh look each time; no state.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/linux/backend.h"

/* "eth0:1" is an address label of eth0, not an interface. */
static void iface_name(const char *label, char name[OS_IF_NAME_MAX])
{
    size_t len = strcspn(label, ":");

    if (len >= IFNAMSIZ)
        len = IFNAMSIZ - 1;
    memset(name, 0, OS_IF_NAME_MAX);
    memcpy(name, label, len);
}

static uint32_t iface_mtu(int fd, const char name[OS_IF_NAME_MAX])
{
    struct ifreq request = {0};

    memcpy(request.ifr_name, name, IFNAMSIZ);
    return ioctl(fd, SIOCGIFMTU, &request) < 0 ? 0 : (uint32_t)request.ifr_mtu;
}

/* The entry of that name among the first count, or NULL. */
static struct os_interface *iface_find(struct os_interface *list, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static void iface_fill(struct os_interface *it, const struct ifaddrs *from, int fd)
{
    struct os_addr addr;

    it->up = (from->ifa_flags & IFF_UP) != 0;
    it->loopback = (from->ifa_flags & IFF_LOOPBACK) != 0;
    if (it->mtu == 0)
        it->mtu = iface_mtu(fd, it->name);
    if (from->ifa_addr && from->ifa_addr->sa_family == AF_PACKET) {
        struct sockaddr_ll link;

        memcpy(&link, from->ifa_addr, sizeof link);
        if (link.sll_halen == sizeof it->mac)
            memcpy(it->mac, link.sll_addr, sizeof it->mac);
    }
    if (from->ifa_addr && os_addr_from_sockaddr(from->ifa_addr, &addr) &&
        it->addr_count < OS_IF_ADDR_MAX)
        it->addr[it->addr_count++] = addr;
}

static int iface_by_index(const void *a, const void *b)
{
    const struct os_interface *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

int os_interfaces(struct os_interface *out, unsigned max)
{
    struct ifaddrs *list, *at;
    struct os_interface *all;
    unsigned room = 0, count = 0;
    int fd;

    if (getifaddrs(&list) < 0)
        return -errno;
    for (at = list; at; at = at->ifa_next)
        room++;
    all = calloc(room ? room : 1, sizeof *all);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!all || fd < 0) {
        int err = all ? errno : ENOMEM;

        if (fd >= 0)
            close(fd);
        free(all);
        freeifaddrs(list);
        return -err;
    }
    for (at = list; at; at = at->ifa_next) {
        char name[OS_IF_NAME_MAX];
        struct os_interface *it;

        iface_name(at->ifa_name, name);
        it = iface_find(all, count, name);
        if (!it) {
            uint32_t index = if_nametoindex(name);

            if (index == 0) /* it went away meanwhile */
                continue;
            it = &all[count++];
            memcpy(it->name, name, sizeof name);
            it->index = it->host_index = index;
        }
        iface_fill(it, at, fd);
    }
    close(fd);
    freeifaddrs(list);
    /* In the order of their indexes: the answer does not depend on which has an address. */
    qsort(all, count, sizeof *all, iface_by_index);
    if (max > 0)
        memcpy(out, all, (count < max ? count : max) * sizeof *all);
    free(all);
    return (int)count;
}

int os_route_source(const struct os_addr *dest, struct os_addr *out)
{
    struct os_addr to = *dest;
    union os_sockaddr sa;
    socklen_t len;
    int fd, rc;

    if (to.port == 0)
        to.port = 9; /* any; nothing is sent */
    len = os_addr_to_sockaddr(&to, &sa);
    if (len == 0)
        return -EAFNOSUPPORT;
    fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    do {
        rc = connect(fd, &sa.any, len) < 0 ? -errno : 0;
    } while (rc == -EINTR);
    if (rc == 0)
        rc = os_tcp_local(fd, out);
    close(fd);
    out->port = rc == 0 ? 0 : out->port;
    return rc;
}
