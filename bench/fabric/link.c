// SPDX-License-Identifier: MIT
/* link.c - making, counting and ending a connection of libfabric; see fabric.h. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"

#define DEPTH    256u
#define SLEEP_MS 100 /* at most, for the sake of what else a caller waits for */

void fabric_must(const char *what, long rc)
{
    if (rc < 0)
        bench_die("%s: %s", what, fi_strerror((int)-rc));
}

/* What each end tells the other over the control connection. */
struct hello {
    struct sockaddr_storage at; /* of the server's passive endpoint */
    uint64_t at_len, remote, key;
};

static struct fi_info *wanted(void)
{
    struct fi_info *hints = fi_allocinfo();

    if (!hints)
        bench_die("no memory");
    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG | FI_RMA;
    hints->addr_format = FI_FORMAT_UNSPEC;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup("tcp");
    return hints;
}

static void open_fabric(struct fabric_link *link, struct bench_end *end, const char *node,
                        const char *service, uint64_t flags)
{
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_info *hints = wanted();

    memset(link, 0, sizeof *link);
    link->end = end;
    fabric_must("fi_getinfo", fi_getinfo(FABRIC_VERSION, node, service, flags, hints, &link->info));
    fi_freeinfo(hints);
    fabric_must("fi_fabric", fi_fabric(link->info->fabric_attr, &link->fabric, NULL));
    fabric_must("fi_eq_open", fi_eq_open(link->fabric, &eq, &link->eq, NULL));
}

/* Domain, queue, endpoint and memory, as `info` has them. */
static void open_endpoint(struct fabric_link *link, struct fi_info *info)
{
    const struct bench_plan *plan = &link->end->plan;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG,
                            .wait_obj = plan->spin ? FI_WAIT_NONE : FI_WAIT_UNSPEC,
                            .size = 4 * DEPTH};
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    size_t octets;

    link->slots = FABRIC_MEMORY / plan->size < 1 ? 1 : FABRIC_MEMORY / plan->size;
    if (link->slots > FABRIC_SLOTS)
        link->slots = FABRIC_SLOTS;
    octets = (size_t)plan->size * link->slots;
    fabric_must("fi_domain", fi_domain(link->fabric, info, &link->domain, NULL));
    fabric_must("fi_cq_open", fi_cq_open(link->domain, &cq, &link->cq, NULL));
    fabric_must("fi_endpoint", fi_endpoint(link->domain, info, &link->ep, NULL));
    fabric_must("fi_ep_bind", fi_ep_bind(link->ep, &link->eq->fid, 0));
    fabric_must("fi_ep_bind", fi_ep_bind(link->ep, &link->cq->fid, FI_TRANSMIT | FI_RECV));
    fabric_must("fi_enable", fi_enable(link->ep));
    link->memory = bench_alloc(octets);
    fabric_must("fi_mr_reg",
                fi_mr_reg(link->domain, link->memory, octets, access, 0, 1, 0, &link->mr, NULL));
    link->descriptor = fi_mr_desc(link->mr);
}

static void expect_event(struct fabric_link *link, uint32_t wanted_event,
                         struct fi_eq_cm_entry *entry)
{
    uint32_t event = 0;
    ssize_t rc = fi_eq_sread(link->eq, &event, entry, sizeof *entry, 10000, 0);
    struct fi_eq_err_entry error = {0};

    if (rc == -FI_EAVAIL && fi_eq_readerr(link->eq, &error, 0) > 0)
        rc = -error.err;
    fabric_must("connecting", rc);
    if (event != wanted_event)
        bench_die("connecting: event %u (need %u)", event, wanted_event);
}

static void tell(struct fabric_link *link, struct hello *hello)
{
    bool virtual = link->mr && link->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

    hello->remote = virtual ? (uintptr_t)link->memory : 0;
    hello->key = link->mr ? fi_mr_key(link->mr) : 0;
    if (!bench_send(link->end->control, hello, sizeof *hello, false))
        bench_die("the peer is gone");
}

static void hear(struct fabric_link *link, struct hello *hello)
{
    if (!bench_recv_all(link->end->control, hello, sizeof *hello, false))
        bench_die("the peer is gone");
    link->remote = hello->remote;
    link->key = hello->key;
}

void fabric_open_client(struct fabric_link *link, struct bench_end *end)
{
    struct fi_eq_cm_entry entry;
    struct hello theirs, mine = {0};
    char service[16];

    if (!bench_recv_all(end->control, &theirs, sizeof theirs, false))
        bench_die("the server is gone");
    /* The port stands at the same place in both families. */
    snprintf(service, sizeof service, "%u", ntohs(((struct sockaddr_in *)&theirs.at)->sin_port));
    open_fabric(link, end, end->address_text, service, 0);
    open_endpoint(link, link->info);
    fabric_post_receive(link);
    fabric_must("fi_connect", fi_connect(link->ep, &theirs.at, NULL, 0));
    expect_event(link, FI_CONNECTED, &entry);
    hear(link, &theirs);
    tell(link, &mine);
}

void fabric_open_server(struct fabric_link *link, struct bench_end *end)
{
    struct fi_eq_cm_entry entry;
    struct hello hello = {0};
    size_t len = sizeof hello.at;

    open_fabric(link, end, end->address_text, "0", FI_SOURCE);
    fabric_must("fi_passive_ep", fi_passive_ep(link->fabric, link->info, &link->pep, NULL));
    fabric_must("fi_pep_bind", fi_pep_bind(link->pep, &link->eq->fid, 0));
    fabric_must("fi_listen", fi_listen(link->pep));
    fabric_must("fi_getname", fi_getname(&link->pep->fid, &hello.at, &len));
    hello.at_len = len;
    tell(link, &hello);
    expect_event(link, FI_CONNREQ, &entry);
    open_endpoint(link, entry.info);
    for (unsigned i = 0; i < link->slots; i++)
        fabric_post_receive(link);
    fabric_must("fi_accept", fi_accept(link->ep, NULL, 0));
    fi_freeinfo(entry.info);
    expect_event(link, FI_CONNECTED, &entry);
    tell(link, &hello);
    hear(link, &hello);
}

void fabric_close(struct fabric_link *link)
{
    fi_shutdown(link->ep, 0);
    fi_close(&link->ep->fid);
    fi_close(&link->mr->fid);
    fi_close(&link->cq->fid);
    fi_close(&link->domain->fid);
    if (link->pep)
        fi_close(&link->pep->fid);
    fi_close(&link->eq->fid);
    fi_close(&link->fabric->fid);
    fi_freeinfo(link->info);
}

void fabric_post_receive(struct fabric_link *link)
{
    size_t size = link->end->plan.size;
    uint8_t *slot = link->memory + link->posted++ % link->slots * size;
    long rc;

    while ((rc = fi_recv(link->ep, slot, size, link->descriptor, 0, NULL)) == -FI_EAGAIN)
        fabric_progress(link, false);
    fabric_must("fi_recv", rc);
}

static void take_error(struct fabric_link *link)
{
    struct fi_cq_err_entry error = {0};

    fabric_must("fi_cq_readerr", fi_cq_readerr(link->cq, &error, 0));
    /* What was still posted when the peer went away. */
    if (link->over || error.err == FI_ECANCELED || error.err == FI_ENOTCONN)
        return;
    bench_die("a request failed: %s", fi_strerror(error.err));
}

void fabric_progress(struct fabric_link *link, bool wait)
{
    struct fi_cq_msg_entry entries[64];
    ssize_t n;

    if (wait && !link->end->plan.spin)
        n = fi_cq_sread(link->cq, entries, 64, NULL, SLEEP_MS);
    else
        n = fi_cq_read(link->cq, entries, 64);
    if (n == -FI_EAVAIL) {
        take_error(link);
        return;
    }
    if (n == -FI_EAGAIN || n == -FI_EINTR)
        return;
    fabric_must("fi_cq_read", n);
    for (ssize_t i = 0; i < n; i++)
        if (entries[i].flags & FI_RECV)
            link->received++;
        else
            link->sent++;
}
