// SPDX-License-Identifier: MIT
/* Memory regions and registration through the dispatch tables, with looks at the token table to see
 * what a token grants. */
#include "provider/mr_test_calls.h"

#define OCTETS 20000u

/* ---- the object ---- */

static void creation_in_every_mode(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        assert_true(pend_set(modes[i]));
        for (unsigned turn = 0; turn < 20; turn++) {
            NDK_MR *mr = mr_open(turn % 2);

            assert_int_equal(mr->Header.ObjectType, NdkObjectTypeMr);
            assert_int_equal(mr->Header.Version.Major, the_adapter->Header.Version.Major);
            assert_int_equal(local_of(mr) >> 31, 0);
            assert_int_not_equal(local_of(mr) >> 8, remote_of(mr) >> 8);
            close_object(&mr->Header);
        }
    }
}

static void every_slot_is_filled(void **state)
{
    const void *const *slots = (const void *const *)(const void *)&mr_dispatch;
    NDK_EXTENSION_INTERFACE extension;
    NDK_MR *mr = mr_open(FALSE);
    GUID guid = {0};

    (void)state;
    for (size_t i = 0; i < sizeof mr_dispatch / sizeof slots[0]; i++)
        assert_non_null(slots[i]);
    assert_int_equal(
        mr->Dispatch->NdkQueryExtension(&mr->Header, &guid, (NDK_VERSION){1, 0}, &extension),
        STATUS_NOT_SUPPORTED);
    close_object(&mr->Header);
}

static void failures_on_request_in_every_mode(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    struct outcome outcome = {0};
    NDK_MR *mr, *fast, *none = NULL;
    NTSTATUS status;

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        assert_true(pend_set(modes[i]));
        mr = mr_open(FALSE);
        fast = mr_open(TRUE);
        assert_true(fail_set("NdkCreateMr:1:0xC000009A,NdkRegisterMr:1:0xC000009A,"
                             "NdkDeregisterMr:1:0xC00000E5,"
                             "NdkInitializeFastRegisterMr:1:0xC000042B"));
        memset(&outcome, 0, sizeof outcome);
        status = the_pd->Dispatch->NdkCreateMr(the_pd, FALSE, outcome_create, &outcome, &none);
        assert_int_equal(outcome_of(&outcome, status), STATUS_INSUFFICIENT_RESOURCES);
        assert_null(none);
        assert_null(outcome.object);
        assert_int_equal(enrol(mr, mdl, OCTETS, 0), STATUS_INSUFFICIENT_RESOURCES);
        assert_int_equal(enrol(mr, mdl, OCTETS, 0), STATUS_SUCCESS);
        assert_int_equal(release(mr), STATUS_INTERNAL_ERROR);
        assert_int_equal(ask(local_of(mr), m, 1, ACCESS_LOCAL_READ), ACCESS_OK);
        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(initialize(fast, 16, TRUE), STATUS_IMPLEMENTATION_LIMIT);
        assert_int_equal(initialize(fast, 16, TRUE), STATUS_SUCCESS);
        close_object(&mr->Header);
        close_object(&fast->Header);
    }
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

/* Each allocation in turn gives nothing: a failure, or none of our business, and nothing leaks. */
static void out_of_memory(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    NDK_MR *mr = mr_open(FALSE), *fast = mr_open(TRUE), *made = NULL;

    (void)state;
    assert_true(fail_set("memory:1"));
    assert_int_equal(the_pd->Dispatch->NdkCreateMr(the_pd, FALSE, outcome_create, NULL, &made),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(made);
    assert_true(fail_set("memory:1"));
    assert_int_equal(enrol(mr, mdl, OCTETS, 0), STATUS_INSUFFICIENT_RESOURCES);
    assert_reason(&mr->Header, "no page list (have no memory, need 5 pages)");
    assert_true(fail_set(NULL));
    assert_int_equal(enrol(mr, mdl, OCTETS, 0), STATUS_SUCCESS);
    assert_true(fail_set("memory:1"));
    assert_int_equal(release(mr), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(ask(local_of(mr), m, 1, ACCESS_LOCAL_READ), ACCESS_OK);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_true(fail_set("memory:1"));
    assert_int_equal(initialize(fast, 16, TRUE), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(initialize(fast, 16, TRUE), STATUS_SUCCESS);
    close_object(&mr->Header);
    close_object(&fast->Header);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

/* ---- registration ---- */

static void flags_and_rights(bool waived)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m + 40, OCTETS - 40);
    NDK_MR *mr = mr_open(FALSE);

    for (ULONG flags = 0; flags < 32; flags++) {
        uint32_t local = ACCESS_LOCAL_READ, remote = 0;
        bool write = (flags & 1) != 0;

        if (flags >= 16 || (flags & 5) == 4) {
            assert_int_equal(enrol(mr, mdl, OCTETS - 40, flags), STATUS_INVALID_PARAMETER);
            assert_reason(&mr->Header, "NdkRegisterMr: bad Flags (have 0x");
            continue;
        }
        assert_int_equal(enrol(mr, mdl, OCTETS - 40, flags), STATUS_SUCCESS);
        if (write)
            local |= ACCESS_LOCAL_WRITE;
        if (write && (waived || (flags & 8) != 0))
            local |= ACCESS_READ_SINK;
        if ((flags & 2) != 0)
            remote |= ACCESS_REMOTE_READ;
        if ((flags & 5) == 5)
            remote |= ACCESS_REMOTE_WRITE;
        assert_int_equal(grants(local_of(mr), m + 40), local);
        assert_int_equal(grants(remote_of(mr), m + 40), remote);
        assert_int_equal(release(mr), STATUS_SUCCESS);
    }
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

static void rights_when_sinks_need_none(void **state)
{
    (void)state;
    flags_and_rights(true);
}

static void rights_when_sinks_need_one(void **state)
{
    (void)state;
    world_close();
    world_open("read_sink_not_required=0");
    flags_and_rights(false);
}

static void a_region_is_what_the_mdl_says(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m + 1000, 9000);
    NDK_MR *mr = mr_open(FALSE);
    struct access access;
    struct os_iov iov[4];

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        assert_true(pend_set(modes[i]));
        assert_int_equal(enrol(mr, mdl, 8000, NDK_MR_FLAG_ALLOW_REMOTE_READ), STATUS_SUCCESS);
        assert_int_equal(ask(remote_of(mr), m + 1000, 8000, ACCESS_REMOTE_READ), ACCESS_OK);
        assert_int_equal(ask(remote_of(mr), m + 1000, 8001, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
        assert_int_equal(ask(remote_of(mr), m + 999, 1, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
        assert_int_equal(ask(remote_of(mr), m + 9000, 1, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
        assert_int_equal(mem_begin(tokens(), local_of(mr), the_pd, NULL, (uintptr_t)m + 1234, 7000,
                                   ACCESS_LOCAL_READ, &access),
                         ACCESS_OK);
        assert_int_equal(mem_pieces(&access, (uintptr_t)m + 1234, 7000, iov, 4), 1);
        assert_ptr_equal(iov[0].base, m + 1234);
        assert_int_equal(iov[0].len, 7000);
        mem_end(&access);
        assert_int_equal(release(mr), STATUS_SUCCESS);
    }
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

/* The MDL's address is an index: the octets are those of its pages, wherever they are. */
static void pages_need_not_be_where_the_address_says(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    MDL *mdl = mdl_new(m + 16, 3 * PAGE_SIZE);
    uint64_t index = UINT64_C(0x123456789) << PAGE_SHIFT;
    PFN_NUMBER *pages = MmGetMdlPfnArray(mdl);
    PFN_NUMBER first = pages[0];
    NDK_MR *mr = mr_open(FALSE);
    struct access access;
    struct os_iov iov[4];

    (void)state;
    mdl->StartVa = (PVOID)(uintptr_t)index;
    pages[0] = first + 2;
    pages[1] = first;
    pages[2] = first + 1;
    pages[3] = first + 3;
    assert_int_equal(enrol(mr, mdl, 3 * PAGE_SIZE, 1), STATUS_SUCCESS);
    assert_int_equal(ask(local_of(mr), m + 16, 1, ACCESS_LOCAL_READ), ACCESS_BOUNDS);
    assert_int_equal(mem_begin(tokens(), local_of(mr), the_pd, NULL, index + 16, 3 * PAGE_SIZE,
                               ACCESS_LOCAL_WRITE, &access),
                     ACCESS_OK);
    assert_int_equal(mem_pieces(&access, index + 16, 3 * PAGE_SIZE, iov, 4), 3);
    assert_ptr_equal(iov[0].base, m + 2 * PAGE_SIZE + 16);
    assert_int_equal(iov[0].len, PAGE_SIZE - 16);
    assert_ptr_equal(iov[1].base, m);
    assert_int_equal(iov[1].len, 2 * PAGE_SIZE);
    assert_ptr_equal(iov[2].base, m + 3 * PAGE_SIZE);
    assert_int_equal(iov[2].len, 16);
    mem_end(&access);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, 4 * PAGE_SIZE);
}

static void bad_registrations(void **state)
{
    uint8_t *m = memory_new(5 * PAGE_SIZE);
    MDL *mdl = mdl_new(m, 2 * PAGE_SIZE), *second = mdl_new(m + 3 * PAGE_SIZE, PAGE_SIZE);
    NDK_MR *mr = mr_open(FALSE), *fast = mr_open(TRUE);

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        assert_true(pend_set(modes[i]));
        assert_int_equal(enrol(mr, NULL, 1, 0), STATUS_INVALID_PARAMETER);
        assert_reason(&mr->Header, "NdkRegisterMr: no MDL");
        assert_int_equal(enrol(mr, mdl, 2 * PAGE_SIZE + 1, 0), STATUS_INVALID_PARAMETER);
        assert_reason(&mr->Header, "Length too large (have 8193, need <= 8192, the chain's");
        mdl->Next = second;
        assert_int_equal(enrol(mr, mdl, 2 * PAGE_SIZE + 1, 0), STATUS_INVALID_PARAMETER);
        assert_reason(&mr->Header, "not virtually contiguous");
        mdl->Next = NULL;
        adapter_from(the_adapter)->info.MaxRegistrationSize = PAGE_SIZE;
        assert_int_equal(enrol(mr, mdl, PAGE_SIZE + 1, 0), STATUS_INVALID_PARAMETER);
        assert_reason(&mr->Header, "(have 4097, need <= 4096, MaxRegistrationSize)");
        assert_int_equal(enrol(mr, mdl, PAGE_SIZE, 0), STATUS_SUCCESS);
        assert_int_equal(enrol(mr, mdl, PAGE_SIZE, 0), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&mr->Header, "already registered");
        assert_int_equal(ask(local_of(mr), m, 1, ACCESS_LOCAL_READ), ACCESS_OK);
        adapter_from(the_adapter)->info.MaxRegistrationSize = 1u << 30;
        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(release(mr), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&mr->Header, "NdkDeregisterMr: not registered");
        assert_int_equal(initialize(mr, 16, TRUE), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&mr->Header, "NdkInitializeFastRegisterMr: wrong kind");
        assert_int_equal(enrol(fast, mdl, 1, 0), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&fast->Header, "NdkRegisterMr: wrong kind");
        assert_int_equal(release(fast), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&fast->Header, "NdkDeregisterMr: wrong kind");
    }
    close_object(&mr->Header);
    close_object(&fast->Header);
    IoFreeMdl(mdl);
    IoFreeMdl(second);
    munmap(m, 5 * PAGE_SIZE);
}

static void memory_that_is_not_there(void **state)
{
    uint8_t *m = memory_new(3 * PAGE_SIZE);
    MDL *mdl = mdl_new(m, 3 * PAGE_SIZE);
    NDK_MR *mr = mr_open(FALSE);
    char page[64];

    (void)state;
    assert_int_equal(mprotect(m + PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
    assert_int_equal(enrol(mr, mdl, 3 * PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE),
                     STATUS_ACCESS_VIOLATION);
    snprintf(page, sizeof page, "page 0x%llx is not there",
             (unsigned long long)(uintptr_t)(m + PAGE_SIZE));
    assert_reason(&mr->Header, page);
    assert_reason(&mr->Header, "need writable memory");
    assert_int_equal(enrol(mr, mdl, 3 * PAGE_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_WRITE),
                     STATUS_ACCESS_VIOLATION);
    /* To be read only it will do; so will the part before it. */
    assert_int_equal(
        enrol(mr, mdl, 3 * PAGE_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_RDMA_READ_SINK),
        STATUS_SUCCESS);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_int_equal(enrol(mr, mdl, PAGE_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_WRITE), STATUS_SUCCESS);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_int_equal(munmap(m + PAGE_SIZE, PAGE_SIZE), 0);
    assert_int_equal(enrol(mr, mdl, 3 * PAGE_SIZE, 0), STATUS_ACCESS_VIOLATION);
    assert_reason(&mr->Header, "need readable memory");
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
    munmap(m + 2 * PAGE_SIZE, PAGE_SIZE);
}

static void each_registration_has_its_own_tokens(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    NDK_MR *mr = mr_open(FALSE);
    uint32_t local = 0, remote = 0;

    (void)state;
    for (unsigned turn = 0; turn < 10; turn++) {
        assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_SUCCESS);
        assert_int_not_equal(local_of(mr), local);
        assert_int_not_equal(remote_of(mr), remote);
        if (turn > 0) {
            assert_int_equal(ask(local, m, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
            assert_int_equal(ask(remote, m, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
        }
        local = local_of(mr);
        remote = remote_of(mr);
        assert_int_equal(ask(local, m, 1, ACCESS_LOCAL_READ), ACCESS_OK);
        assert_int_equal(ask(remote, m, 1, ACCESS_REMOTE_READ), ACCESS_OK);
        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(ask(local, m, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
        assert_int_equal(ask(remote, m, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    }
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

static void a_region_of_no_octets(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    NDK_MR *mr = mr_open(FALSE);

    (void)state;
    assert_int_equal(enrol(mr, mdl, 0, 7), STATUS_SUCCESS);
    assert_int_equal(ask(remote_of(mr), m, 0, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(ask(remote_of(mr), m, 1, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* ---- ends with accesses in progress ---- */

static void deregistration_waits_for_accesses(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    NDK_MR *mr = mr_open(FALSE);
    struct access local, remote;

    (void)state;
    for (size_t i = 0; i < MODES * 2; i++) {
        struct outcome outcome = {0};

        assert_true(pend_set(modes[i / 2]));
        assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_SUCCESS);
        assert_true(mem_hold(tokens(), local_of(mr), &local));
        assert_true(mem_hold(tokens(), remote_of(mr), &remote));
        assert_int_equal(mr->Dispatch->NdkDeregisterMr(mr, outcome_request, &outcome),
                         STATUS_PENDING);
        assert_int_equal(ask(local_of(mr), m, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
        assert_int_equal(ask(remote_of(mr), m, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
        assert_int_equal(release(mr), STATUS_INVALID_DEVICE_REQUEST);
        assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_INVALID_DEVICE_REQUEST);
        mem_end(i % 2 ? &local : &remote);
        os_sleep_us(3000);
        assert_false(outcome_came(&outcome));
        mem_end(i % 2 ? &remote : &local);
        assert_int_equal(outcome_of(&outcome, STATUS_PENDING), STATUS_SUCCESS);
    }
    close_object(&mr->Header);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

static void a_close_deregisters_and_waits_for_accesses(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    struct access access;

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        struct outcome closed = {0}, pd_closed = {0};
        NDK_PD *pd = pd_open();
        NDK_MR *mr = mr_open_in(pd, FALSE);
        uint32_t token;

        /* Nothing in progress: the close is a deregistration. */
        assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_SUCCESS);
        token = remote_of(mr);
        close_object(&mr->Header);
        assert_false(mem_hold(tokens(), token, &access));
        assert_null(mem_find(tokens(), token));
        assert_true(pend_set(modes[i]));
        mr = mr_open_in(pd, FALSE);
        assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_SUCCESS);
        token = remote_of(mr);
        assert_true(mem_hold(tokens(), token, &access));
        assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &closed),
                         STATUS_PENDING);
        assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, outcome_close, &pd_closed),
                         STATUS_PENDING);
        os_sleep_us(3000);
        assert_false(outcome_came(&closed));
        assert_non_null(mem_find(tokens(), token)); /* not given back yet */
        mem_end(&access);
        outcome_of(&closed, STATUS_PENDING);
        outcome_of(&pd_closed, STATUS_PENDING);
        assert_null(mem_find(tokens(), token));
    }
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

static void a_close_behind_a_pending_deregistration(void **state)
{
    uint8_t *m = memory_new(OCTETS);
    MDL *mdl = mdl_new(m, OCTETS);
    struct outcome outcome = {0}, closed = {0};
    NDK_MR *mr = mr_open(FALSE);
    struct access access;

    (void)state;
    assert_int_equal(enrol(mr, mdl, OCTETS, 7), STATUS_SUCCESS);
    assert_true(mem_hold(tokens(), local_of(mr), &access));
    assert_int_equal(mr->Dispatch->NdkDeregisterMr(mr, outcome_request, &outcome), STATUS_PENDING);
    assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &closed), STATUS_PENDING);
    mem_end(&access);
    outcome_of(&closed, STATUS_PENDING);
    assert_true(outcome_came(&outcome)); /* the close completion is the last callback */
    assert_int_equal(outcome.status, STATUS_SUCCESS);
    IoFreeMdl(mdl);
    munmap(m, OCTETS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)
    const struct CMUnitTest tests[] = {
        TEST(creation_in_every_mode),
        TEST(every_slot_is_filled),
        TEST(failures_on_request_in_every_mode),
        TEST(out_of_memory),
        TEST(rights_when_sinks_need_none),
        TEST(rights_when_sinks_need_one),
        TEST(a_region_is_what_the_mdl_says),
        TEST(pages_need_not_be_where_the_address_says),
        TEST(bad_registrations),
        TEST(memory_that_is_not_there),
        TEST(each_registration_has_its_own_tokens),
        TEST(a_region_of_no_octets),
        TEST(deregistration_waits_for_accesses),
        TEST(a_close_deregisters_and_waits_for_accesses),
        TEST(a_close_behind_a_pending_deregistration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
