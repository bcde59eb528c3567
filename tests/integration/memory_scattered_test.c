// SPDX-License-Identifier: MIT
/*
 * Adapter pages: a mapping of an MDL chain, SGEs with the privileged token, fast-registers from
 * such pages; with host addresses as logical addresses and with the option `scattered`, which tells
 * a consumer that takes adapter pages for contiguous, or virtual addresses for logical ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "regions.h"

#define PAGE   4096u
#define SIZE   (12 * PAGE)
#define CTX(n) ((void *)(uintptr_t)(n))

static const char *const options[] = {"completion=placed", "completion=placed,scattered=1"};

/* [data, data + size) in three MDLs that meet within pages. */
static void chain_open(uint8_t *data, size_t size, MDL *chain[3])
{
    const size_t ends[4] = {0, size / 3, size / 2 + 1, size};

    for (int i = 0; i < 3; i++) {
        chain[i] =
            IoAllocateMdl(data + ends[i], (ULONG)(ends[i + 1] - ends[i]), FALSE, FALSE, NULL);
        MmBuildMdlForNonPagedPool(chain[i]);
        if (i)
            chain[i - 1]->Next = chain[i];
    }
}

static void chain_close(MDL *chain[3])
{
    for (int i = 0; i < 3; i++)
        IoFreeMdl(chain[i]);
}

/* The end sends from, receives into and reads into adapter pages, at most four an operation. */
static void use_pages(struct bed *bed, const uint8_t *data, NDK_SGE *sges, ULONG count,
                      bool may_sink)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;
    ULONG total = 0;

    for (ULONG i = 0; i < count; i++)
        total += sges[i].Length;
    memset(bed->server.data, 0, SIZE);
    post_receive(s, &bed->server, SIZE, CTX(1));
    expect_call(c->qp->Dispatch->NdkSend(c->qp, CTX(2), sges, count, 0), STATUS_SUCCESS, "NdkSend",
                &c->qp->Header);
    expect_completion(&s->receive, "from pages", CTX(1), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&c->initiator, "from pages", CTX(2), NdkOperationTypeSend, STATUS_SUCCESS);
    assert_memory_equal(bed->server.data, data, total);
    fill(bed->server.data, SIZE, total);
    assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, CTX(3), sges, count), STATUS_SUCCESS);
    assert_int_equal(post_send(s, &bed->server, total, 0, CTX(4)), STATUS_SUCCESS);
    expect_completion(&c->receive, "into pages", CTX(3), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&s->initiator, "into pages", CTX(4), NdkOperationTypeSend, STATUS_SUCCESS);
    assert_true(check(data, total, total));
    if (!may_sink)
        return;
    fill(bed->server.data, SIZE, total + 1);
    assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, CTX(5), sges, count,
                                              (UINT64)(uintptr_t)bed->server.data,
                                              bed->server.remote, 0),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "read into pages", CTX(5), NdkOperationTypeRead,
                      STATUS_SUCCESS);
    assert_true(check(data, total, total + 1));
}

static void pages_of_a_chain(void **state)
{
    static const struct {
        size_t offset, size;
    } cases[] = {{0, 4 * PAGE}, {1, 3 * PAGE}, {PAGE - 1, 2 * PAGE + 2}, {100, 300}, {0, PAGE}};

    (void)state;
    for (unsigned o = 0; o < 2; o++) {
        struct bed bed;

        bed_open(&bed, options[o], SIZE, ALL_RIGHTS);
        for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            uint8_t *data = bed.client.data + cases[i].offset;
            MDL *chain[3];
            struct lam lam;
            NDK_SGE sges[4];
            ULONG count;

            chain_open(data, cases[i].size, chain);
            lam_open(bed.pair.client.adapter, chain[0], cases[i].size, &lam);
            assert_int_equal(lam.fbo, cases[i].offset);
            count = lam_sges(bed.pair.client.pd, &lam, sges, 4);
            assert_int_equal(count, lam.map->AdapterPageCount);
            fill(bed.client.data, SIZE, i);
            use_pages(&bed, data, sges, count, true);
            lam_close(&lam);
            chain_close(chain);
        }
        bed_close(&bed);
    }
}

static void logical_addresses(void **state)
{
    (void)state;
    for (unsigned o = 0; o < 2; o++) {
        struct end end;
        struct memory m;
        struct lam lam;

        end_open(&end, options[o]);
        make_memory(end.pd, 200 * PAGE, 0, &m);
        lam_open(end.adapter, m.mdl, 200 * PAGE, &lam);
        assert_int_equal(lam.map->AdapterPageCount, 200);
        for (ULONG i = 0; i < 200; i++) {
            assert_int_equal(lam_page(&lam, i) % PAGE, 0);
            if (o == 0) {
                assert_int_equal(lam_page(&lam, i), (uintptr_t)m.data + i * PAGE);
                continue;
            }
            assert_int_not_equal(lam_page(&lam, i), (uintptr_t)m.data + i * PAGE);
            for (ULONG j = 0; j < i; j++)
                assert_int_not_equal(lam_page(&lam, i), lam_page(&lam, j));
            if (i) {
                assert_int_not_equal(lam_page(&lam, i), lam_page(&lam, i - 1) + PAGE);
                assert_int_not_equal(lam_page(&lam, i) + PAGE, lam_page(&lam, i - 1));
            }
        }
        lam_close(&lam);
        free_memory(&m);
        end_close(&end);
    }
}

/* ---- consumers' mistakes -------------------------------------------------------------------- */

/* One SGE over a page boundary: fine while pages are contiguous, else refused by the post. */
static void one_sge_for_two_pages(void **state)
{
    (void)state;
    for (unsigned o = 0; o < 2; o++) {
        struct bed bed;
        struct end *c;
        struct lam lam;
        NDK_SGE sges[4];
        char text[512];

        bed_open(&bed, options[o], SIZE, ALL_RIGHTS);
        c = &bed.pair.client;
        lam_open(c->adapter, bed.client.mdl, 4 * PAGE, &lam);
        lam_sges(c->pd, &lam, sges, 4);
        sges[0].Length = 2 * PAGE;
        fill(bed.client.data, SIZE, 6);
        if (o == 0) {
            use_pages(&bed, bed.client.data, sges, 1, true);
        } else {
            assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(1), sges, 1, 0),
                             STATUS_ACCESS_VIOLATION);
            softndk_reason(&c->qp->Header, text, sizeof text);
            assert_non_null(strstr(text, "need one SGE a page: adapter pages are not contiguous"));
            assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, CTX(1), sges, 1),
                             STATUS_ACCESS_VIOLATION);
            assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, CTX(1), sges, 1, 0, 0, 0),
                             STATUS_ACCESS_VIOLATION);
            assert_int_equal(c->qp->Dispatch->NdkWrite(c->qp, CTX(1), sges, 1, 0, 0, 0),
                             STATUS_ACCESS_VIOLATION);
            sges[0].LogicalAddress.QuadPart += PAGE - 1; /* two octets over a boundary */
            sges[0].Length = 2;
            assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(1), sges, 1, 0),
                             STATUS_ACCESS_VIOLATION);
            expect_nothing(&c->initiator, "refused", 10);
            sges[0].Length = 1; /* and nothing was hurt */
            use_pages(&bed, bed.client.data + PAGE - 1, sges, 1, true);
        }
        lam_close(&lam);
        bed_close(&bed);
    }
}

/* A virtual address where a logical one is due: found with `scattered`, as is a page that is not
 * there. */
static void virtual_for_logical(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct bed bed;
        struct end *c;
        struct lam lam;
        MDL *mdl;
        NDK_SGE sge;
        uint8_t *page =
            mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_true(page != MAP_FAILED);
        bed_open(&bed, options[1], SIZE, ALL_RIGHTS);
        c = &bed.pair.client;
        mdl = IoAllocateMdl(page, PAGE, FALSE, FALSE, NULL);
        MmBuildMdlForNonPagedPool(mdl);
        lam_open(c->adapter, mdl, PAGE, &lam);
        lam_sges(c->pd, &lam, &sge, 1);
        if (gone)
            sge.LogicalAddress.QuadPart ^= (LONGLONG)1 << 46; /* of no mapping */
        else
            sge.LogicalAddress.QuadPart = (LONGLONG)(uintptr_t)page;
        post_receive(&bed.pair.server, &bed.server, PAGE, CTX(2));
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(1), &sge, 1, 0), STATUS_SUCCESS);
        expect_completion(&c->initiator, "no adapter page", CTX(1), NdkOperationTypeSend,
                          STATUS_ACCESS_VIOLATION);
        expect_event(c, "no adapter page", REASON_TERMINATE_SENT, IWARP_ERR_RDMAP_LOCAL);
        lam_close(&lam);
        IoFreeMdl(mdl);
        bed_close(&bed);
        munmap(page, PAGE);
    }
}

/* NdkFastRegister takes the pages of a mapping, not host addresses. */
static void fast_register_of_host_pages(void **state)
{
    struct bed bed;
    struct region r;

    (void)state;
    bed_open(&bed, options[1], SIZE, ALL_RIGHTS);
    region_open(&bed.pair.server, 0, 2 * PAGE, 0, TRUE, &r);
    for (ULONG i = 0; i < 2; i++)
        r.lam.map->AdapterPageArray[i].QuadPart = (LONGLONG)(uintptr_t)(r.room + i * PAGE);
    assert_int_equal(region_post(&r, 0, REMOTE_BOTH, CTX(1)), STATUS_ACCESS_VIOLATION);
    region_close(&r);
    bed_close(&bed);
}

/* Without the waiver the privileged token is no read sink, in either mode; all else works. */
static void privileged_sink(void **state)
{
    static const char *const strict[] = {
        "completion=placed,read_sink_not_required=0",
        "completion=placed,read_sink_not_required=0,scattered=1",
    };

    (void)state;
    for (unsigned o = 0; o < 2; o++) {
        struct bed bed;
        struct end *c;
        struct lam lam;
        NDK_SGE sge;

        bed_open(&bed, strict[o], SIZE, ALL_RIGHTS);
        c = &bed.pair.client;
        lam_open(c->adapter, bed.client.mdl, PAGE, &lam);
        lam_sges(c->pd, &lam, &sge, 1);
        use_pages(&bed, bed.client.data, &sge, 1, false);
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, CTX(1), &sge, 1,
                                                  (UINT64)(uintptr_t)bed.server.data,
                                                  bed.server.remote, 0),
                         STATUS_SUCCESS);
        expect_completion(&c->initiator, "privileged sink", CTX(1), NdkOperationTypeRead,
                          STATUS_ACCESS_VIOLATION);
        expect_event(c, "privileged sink", REASON_TERMINATE_SENT, IWARP_ERR_DDP_LOCAL);
        lam_close(&lam);
        bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(pages_of_a_chain),      BOTH_MODES(logical_addresses),
        BOTH_MODES(one_sge_for_two_pages), BOTH_MODES(virtual_for_logical),
        BOTH_MODES(privileged_sink),       BOTH_MODES(fast_register_of_host_pages),
    };

    return cmocka_run_group_tests_name("memory_scattered", tests, NULL, NULL);
}
