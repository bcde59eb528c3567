// SPDX-License-Identifier: MIT
/* Memory regions through their dispatch table, with looks at the token table to see what a token
 * grants; fast-registration by the calls that a QP makes. */
#include "provider/mr_test.h"

#define OCTETS 20000u

/* ---- calls ---- */

static NDK_MR *mr_open_in(NDK_PD *pd, BOOLEAN fast)
{
    struct outcome outcome = {0};
    NDK_MR *mr = NULL;
    NTSTATUS status = pd->Dispatch->NdkCreateMr(pd, fast, outcome_create, &outcome, &mr);

    if (status == STATUS_PENDING) {
        assert_null(mr); /* not to be touched on the asynchronous path */
        status = outcome_of(&outcome, status);
        mr = (NDK_MR *)(void *)outcome.object;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    assert_non_null(mr);
    return mr;
}

static NDK_MR *mr_open(BOOLEAN fast)
{
    return mr_open_in(the_pd, fast);
}

static NTSTATUS enrol(NDK_MR *mr, MDL *mdl, SIZE_T length, ULONG flags)
{
    struct outcome outcome = {0};

    return outcome_of(
        &outcome, mr->Dispatch->NdkRegisterMr(mr, mdl, length, flags, outcome_request, &outcome));
}

static NTSTATUS release(NDK_MR *mr)
{
    struct outcome outcome = {0};

    return outcome_of(&outcome, mr->Dispatch->NdkDeregisterMr(mr, outcome_request, &outcome));
}

static NTSTATUS initialize(NDK_MR *mr, ULONG pages, BOOLEAN remote)
{
    struct outcome outcome = {0};

    return outcome_of(&outcome, mr->Dispatch->NdkInitializeFastRegisterMr(
                                    mr, pages, remote, outcome_request, &outcome));
}

static uint32_t remote_of(NDK_MR *mr)
{
    return mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
}

static uint32_t local_of(NDK_MR *mr)
{
    return mr->Dispatch->NdkGetLocalTokenFromMr(mr);
}

static enum access_result ask(uint32_t token, const void *at, uint64_t length, uint32_t need)
{
    struct access access = {0};
    enum access_result result =
        mem_begin(tokens(), token, the_pd, NULL, (uintptr_t)at, length, need, &access);

    if (result == ACCESS_OK)
        mem_end(&access);
    return result;
}

/* Everything that a token grants. */
static uint32_t grants(uint32_t token, const void *at)
{
    uint32_t rights = 0;

    for (uint32_t need = 1; need < 32; need <<= 1) {
        enum access_result result = ask(token, at, 1, need);

        if (result == ACCESS_OK)
            rights |= need;
        else
            assert_int_equal(result, ACCESS_NO_RIGHT);
    }
    return rights;
}

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

/* ---- fast-registration ---- */

static NDK_LOGICAL_ADDRESS *array_of(const uint8_t *m, unsigned pages)
{
    static NDK_LOGICAL_ADDRESS array[300];

    for (unsigned i = 0; i < pages; i++)
        array[i].QuadPart = (LONGLONG)(uintptr_t)(m + i * PAGE_SIZE);
    return array;
}

/* The PD stands in for the QP at which reasons are left. */
static NTSTATUS prepare(NDK_MR *mr, ULONG pages, const NDK_LOGICAL_ADDRESS *array, ULONG fbo,
                        SIZE_T length, uint64_t base, ULONG flags, struct mr_fast **fast)
{
    *fast = NULL;
    return mr_fast_prepare(&pd_from(the_pd)->object, pd_from(the_pd), mr, pages, array, fbo, length,
                           (PVOID)(uintptr_t)base, flags, fast);
}

#define BOTH (NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE)

static void fast_register(NDK_MR *mr, const uint8_t *m, unsigned pages, uint64_t base, ULONG flags)
{
    struct mr_fast *fast;

    assert_int_equal(
        prepare(mr, pages, array_of(m, pages), 0, pages * PAGE_SIZE, base, flags, &fast),
        STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_SUCCESS);
}

static void must_not_be_called(void *context)
{
    (void)context;
    abort();
}

static void invalidate(NDK_MR *mr)
{
    assert_int_equal(mr_invalidate(mr_from(mr), must_not_be_called, NULL), STATUS_SUCCESS);
}

static void initialization(void **state)
{
    uint8_t *m = memory_new(32 * PAGE_SIZE);
    struct mr_fast *fast;
    NDK_MR *mr = mr_open(TRUE);

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        assert_true(pend_set(modes[i]));
        assert_int_equal(initialize(mr, 257, TRUE), STATUS_IMPLEMENTATION_LIMIT);
        assert_reason(&mr->Header, "(have 257, need <= 256)");
        assert_int_equal(initialize(mr, 0, TRUE), STATUS_INVALID_PARAMETER);
        assert_int_equal(initialize(mr, 256, TRUE), STATUS_SUCCESS);
        assert_int_equal(initialize(mr, 16, FALSE), STATUS_SUCCESS); /* the latest wins */
        assert_int_equal(prepare(mr, 17, array_of(m, 17), 0, 17 * PAGE_SIZE, 0, 0, &fast),
                         STATUS_INVALID_PARAMETER);
        assert_int_equal(
            prepare(mr, 1, array_of(m, 1), 0, 1, 0, NDK_OP_FLAG_ALLOW_REMOTE_READ, &fast),
            STATUS_ACCESS_VIOLATION);
        assert_int_equal(initialize(mr, 17, TRUE), STATUS_SUCCESS);
        assert_int_equal(prepare(mr, 17, array_of(m, 17), 0, 17 * PAGE_SIZE, 0, BOTH, &fast),
                         STATUS_SUCCESS);
        /* Not while one is posted, nor while one is valid. */
        assert_int_equal(initialize(mr, 1, TRUE), STATUS_INVALID_DEVICE_REQUEST);
        assert_reason(&mr->Header, "in use");
        assert_int_equal(mr_fast_execute(fast), STATUS_SUCCESS);
        assert_int_equal(initialize(mr, 1, TRUE), STATUS_INVALID_DEVICE_REQUEST);
        invalidate(mr);
    }
    close_object(&mr->Header);
    munmap(m, 32 * PAGE_SIZE);
}

static void what_a_fast_register_is_checked_for(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    const uint64_t base = UINT64_C(0x500000000);
    NDK_LOGICAL_ADDRESS *array = array_of(m, 4);
    NDK_MR *mr = mr_open(TRUE), *plain = mr_open(FALSE), *other;
    NDK_OBJECT_HEADER *qp = &the_pd->Header;
    NDK_PD *pd = pd_open();
    struct mr_fast *fast;

    (void)state;
    other = mr_open_in(pd, TRUE);
    assert_int_equal(prepare(mr, 1, array, 0, 1, base, 0, &fast), STATUS_INVALID_DEVICE_STATE);
    assert_reason(qp, "need an initialized FRMR");
    assert_int_equal(prepare(plain, 1, array, 0, 1, base, 0, &fast), STATUS_INVALID_DEVICE_STATE);
    assert_reason(qp, "have FastRegister FALSE");
    assert_int_equal(initialize(mr, 4, TRUE), STATUS_SUCCESS);
    assert_int_equal(initialize(other, 4, TRUE), STATUS_SUCCESS);
    assert_int_equal(prepare(other, 1, array, 0, 1, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "is of another domain");
    assert_int_equal(prepare(mr, 5, array, 0, 1, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "AdapterPageCount too large (have 5, need <= 4");
    assert_int_equal(prepare(mr, 1, array, 4096, 0, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "FBO too large (have 4096");
    assert_int_equal(prepare(mr, 2, array, 0, 8193, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "Length too large (have 8193, need <= 8192");
    assert_int_equal(prepare(mr, 2, array, 1, 8192, base + 1, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "Length too large (have 8192, need <= 8191");
    assert_int_equal(prepare(mr, 0, array, 0, 1, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_int_equal(prepare(mr, 2, array, 1, 8191, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "BaseVirtualAddress does not fit FBO");
    assert_int_equal(prepare(mr, 2, array, 0, 1, 8, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_int_equal(prepare(mr, 2, array, 0, 4097, ~UINT64_C(0xfff), 0, &fast),
                     STATUS_INVALID_PARAMETER);
    assert_reason(qp, "wraps");
    assert_int_equal(prepare(mr, 2, array, 0, 1, base, 0x20, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "have 0x20 alone, need 0x30");
    array[1].QuadPart += 8;
    assert_int_equal(prepare(mr, 2, array, 0, 1, base, 0, &fast), STATUS_INVALID_PARAMETER);
    assert_reason(qp, "AdapterPageArray[1] not aligned");
    array[1].QuadPart -= 8;
    assert_int_equal(mprotect(m + PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
    assert_int_equal(prepare(mr, 2, array, 0, 8192, base, BOTH, &fast), STATUS_ACCESS_VIOLATION);
    assert_reason(qp, "need writable memory");
    assert_int_equal(prepare(mr, 2, array, 0, 8192, base, NDK_OP_FLAG_ALLOW_REMOTE_READ, &fast),
                     STATUS_SUCCESS);
    mr_fast_discard(fast);
    assert_true(fail_set("memory:1"));
    assert_int_equal(prepare(mr, 1, array, 0, 1, base, 0, &fast), STATUS_INSUFFICIENT_RESOURCES);
    /* None of the refused ones counts as posted. */
    assert_int_equal(initialize(mr, 4, TRUE), STATUS_SUCCESS);
    close_object(&mr->Header);
    close_object(&plain->Header);
    close_object(&other->Header);
    close_object(&pd->Header);
    munmap(m, 4 * PAGE_SIZE);
}

static void a_filled_region(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    const uint64_t base = UINT64_C(0x500000064);
    NDK_MR *mr = mr_open(TRUE);
    NDK_LOGICAL_ADDRESS array[2];
    struct mr_fast *fast;
    struct access access;
    struct os_iov iov[3];

    (void)state;
    array[0].QuadPart = (LONGLONG)(uintptr_t)(m + 3 * PAGE_SIZE);
    array[1].QuadPart = (LONGLONG)(uintptr_t)(m + 1 * PAGE_SIZE);
    assert_int_equal(initialize(mr, 2, TRUE), STATUS_SUCCESS);
    assert_int_equal(prepare(mr, 2, array, 100, 8092, base, BOTH, &fast), STATUS_SUCCESS);
    memset(array, 0, sizeof array); /* the array is free once the call has returned */
    /* Announced, not valid before it is executed. */
    assert_int_equal(ask(remote_of(mr), (void *)(uintptr_t)base, 1, ACCESS_REMOTE_READ),
                     ACCESS_INVALID_TOKEN);
    assert_int_equal(mr_fast_execute(fast), STATUS_SUCCESS);
    assert_int_equal(grants(remote_of(mr), (void *)(uintptr_t)base),
                     ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE);
    assert_int_equal(grants(local_of(mr), (void *)(uintptr_t)base),
                     ACCESS_LOCAL_READ | ACCESS_LOCAL_WRITE | ACCESS_READ_SINK);
    assert_int_equal(
        mem_begin(tokens(), remote_of(mr), the_pd, NULL, base, 8092, ACCESS_REMOTE_WRITE, &access),
        ACCESS_OK);
    assert_int_equal(mem_pieces(&access, base, 8092, iov, 3), 2);
    assert_ptr_equal(iov[0].base, m + 3 * PAGE_SIZE + 100);
    assert_int_equal(iov[0].len, PAGE_SIZE - 100);
    assert_ptr_equal(iov[1].base, m + PAGE_SIZE);
    assert_int_equal(iov[1].len, PAGE_SIZE);
    mem_end(&access);
    assert_int_equal(ask(remote_of(mr), (void *)(uintptr_t)(base - 1), 1, ACCESS_REMOTE_READ),
                     ACCESS_BOUNDS);
    assert_int_equal(ask(remote_of(mr), (void *)(uintptr_t)base, 8093, ACCESS_REMOTE_READ),
                     ACCESS_BOUNDS);
    invalidate(mr);
    /* Base 0 is an address like any other. */
    fast_register(mr, m, 2, 0, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    assert_int_equal(grants(remote_of(mr), NULL), ACCESS_REMOTE_READ);
    assert_int_equal(grants(local_of(mr), NULL), ACCESS_LOCAL_READ);
    invalidate(mr);
    fast_register(mr, m, 2, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE);
    assert_int_equal(grants(remote_of(mr), NULL), 0);
    close_object(&mr->Header);
    munmap(m, 4 * PAGE_SIZE);
}

static void sinks_of_fast_registers_when_they_need_a_right(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr;

    (void)state;
    world_close();
    world_open("read_sink_not_required=0");
    mr = mr_open(TRUE);
    assert_int_equal(initialize(mr, 2, TRUE), STATUS_SUCCESS);
    fast_register(mr, m, 1, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE);
    assert_int_equal(grants(local_of(mr), NULL), ACCESS_LOCAL_READ | ACCESS_LOCAL_WRITE);
    invalidate(mr);
    fast_register(mr, m, 1, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK);
    assert_int_equal(grants(local_of(mr), NULL),
                     ACCESS_LOCAL_READ | ACCESS_LOCAL_WRITE | ACCESS_READ_SINK);
    close_object(&mr->Header);
    munmap(m, PAGE_SIZE);
}

static void tokens_of_fast_registers(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE);
    struct mr_fast *first, *second, *third;
    uint32_t local, one, two;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    local = local_of(mr);
    /* Posted behind each other: register, invalidate, register, before the first is executed. */
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &first), STATUS_SUCCESS);
    one = remote_of(mr);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 20, 0, BOTH, &second), STATUS_SUCCESS);
    two = remote_of(mr);
    assert_int_not_equal(one, two);
    assert_int_equal(mr_fast_execute(first), STATUS_SUCCESS);
    assert_int_equal(ask(one, NULL, 10, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(ask(two, NULL, 10, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(remote_of(mr), two);
    invalidate(mr);
    assert_int_equal(mr_fast_execute(second), STATUS_SUCCESS);
    assert_int_equal(ask(one, NULL, 10, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(ask(two, NULL, 20, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(local_of(mr), local); /* D9: only the remote one is renewed */
    assert_int_equal(ask(local, NULL, 20, ACCESS_LOCAL_READ), ACCESS_OK);
    /* A post that was refused leaves the answer as it was, but its token is used up. */
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 30, 0, BOTH, &third), STATUS_SUCCESS);
    one = remote_of(mr);
    assert_int_not_equal(one, two);
    mr_fast_discard(third);
    assert_int_equal(remote_of(mr), two);
    assert_int_equal(ask(two, NULL, 20, ACCESS_REMOTE_READ), ACCESS_OK);
    invalidate(mr);
    fast_register(mr, m, 1, 0, BOTH);
    assert_int_not_equal(remote_of(mr), one);
    assert_int_not_equal(remote_of(mr), two);
    close_object(&mr->Header);
    munmap(m, PAGE_SIZE);
}

static void a_fast_register_needs_an_invalidation_first(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE), *plain = mr_open(FALSE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    struct mr_fast *fast;
    uint32_t token;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    assert_int_equal(mr_invalidate(mr_from(mr), must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    fast_register(mr, m, 1, 0, BOTH);
    token = remote_of(mr);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(ask(token, NULL, PAGE_SIZE, ACCESS_REMOTE_READ), ACCESS_OK); /* as it was */
    invalidate(mr);
    assert_int_equal(ask(token, NULL, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(mr_invalidate(mr_from(mr), must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    /* Never a registered one. */
    assert_int_equal(enrol(plain, mdl, PAGE_SIZE, 7), STATUS_SUCCESS);
    assert_int_equal(mr_invalidate(mr_from(plain), must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(ask(remote_of(plain), m, 1, ACCESS_REMOTE_READ), ACCESS_OK);
    close_object(&mr->Header);
    close_object(&plain->Header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

static void count_call(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
}

static void an_invalidation_waits_for_accesses(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE);
    atomic_uint calls = 0;
    struct mr_fast *fast;
    struct access access;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    fast_register(mr, m, 1, 0, BOTH);
    assert_true(mem_hold(tokens(), remote_of(mr), &access));
    assert_int_equal(mr_invalidate(mr_from(mr), count_call, &calls), STATUS_PENDING);
    assert_int_equal(ask(local_of(mr), NULL, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(mr_invalidate(mr_from(mr), must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_INVALID_DEVICE_REQUEST); /* too early */
    assert_int_equal(atomic_load(&calls), 0);
    mem_end(&access);
    assert_int_equal(atomic_load(&calls), 1);
    fast_register(mr, m, 1, 0, BOTH);
    /* A close during a pending invalidation. */
    assert_true(mem_hold(tokens(), local_of(mr), &access));
    assert_int_equal(mr_invalidate(mr_from(mr), count_call, &calls), STATUS_PENDING);
    {
        struct outcome closed = {0};

        assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &closed),
                         STATUS_PENDING);
        mem_end(&access);
        assert_int_equal(atomic_load(&calls), 2);
        outcome_of(&closed, STATUS_PENDING);
    }
    munmap(m, PAGE_SIZE);
}

static void a_close_with_a_fast_register_posted(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    struct outcome closed = {0};
    NDK_MR *mr = mr_open(TRUE);
    struct mr_fast *fast;
    struct access access;
    uint32_t token;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
    token = remote_of(mr);
    assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &closed), STATUS_PENDING);
    os_sleep_us(1000);
    assert_false(outcome_came(&closed));
    assert_int_equal(mr_fast_execute(fast), STATUS_INVALID_DEVICE_REQUEST);
    outcome_of(&closed, STATUS_PENDING);
    assert_false(mem_hold(tokens(), token, &access));
    munmap(m, PAGE_SIZE);
}

static void finding_by_token(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE), *plain = mr_open(FALSE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    struct pd *pd = pd_from(the_pd), *other = pd_from(pd_open());
    struct mr *found;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    assert_null(mr_find_fast(tokens(), remote_of(mr), pd, true)); /* not valid */
    fast_register(mr, m, 1, 0, BOTH);
    found = mr_find_fast(tokens(), remote_of(mr), pd, true);
    assert_ptr_equal(found, mr_from(mr));
    object_unref(&found->object);
    found = mr_find_fast(tokens(), local_of(mr), pd, false);
    assert_ptr_equal(found, mr_from(mr));
    object_unref(&found->object);
    assert_null(mr_find_fast(tokens(), local_of(mr), pd, true));
    assert_null(mr_find_fast(tokens(), remote_of(mr), pd, false));
    assert_null(mr_find_fast(tokens(), remote_of(mr), other, true));
    assert_null(mr_find_fast(tokens(), remote_of(mr) ^ 1, pd, true));
    assert_null(mr_find_fast(tokens(), pd->privileged_token, pd, true));
    assert_null(mr_find_fast(tokens(), pd->privileged_token, pd, false));
    assert_null(mr_find_fast(tokens(), 0, pd, true));
    invalidate(mr);
    assert_null(mr_find_fast(tokens(), remote_of(mr), pd, true));
    fast_register(mr, m, 1, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE); /* nothing for the peer */
    assert_null(mr_find_fast(tokens(), remote_of(mr), pd, true));
    assert_int_equal(enrol(plain, mdl, PAGE_SIZE, 7), STATUS_SUCCESS);
    assert_null(mr_find_fast(tokens(), remote_of(plain), pd, true));
    assert_null(mr_find_fast(tokens(), local_of(plain), pd, false));
    close_object(&mr->Header);
    close_object(&plain->Header);
    close_object(&other->object.header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* ---- many threads ---- */

/* Writers go on with whatever token was published last; after the end of each registration was
 * told the memory is poisoned, and stays so. */
struct race {
    _Atomic uint32_t token;
    _Atomic uint64_t address;
    atomic_bool stop;
    atomic_ulong accesses;
};

static void writer(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->stop)) {
        uint64_t at = atomic_load(&race->address);
        struct access access;
        struct os_iov iov;

        if (mem_begin(tokens(), atomic_load(&race->token), the_pd, NULL, at, 64,
                      ACCESS_REMOTE_WRITE, &access) != ACCESS_OK)
            continue;
        if (mem_pieces(&access, at, 64, &iov, 1) == 1)
            for (unsigned i = 0; i < 64; i++)
                __atomic_store_n((uint8_t *)iov.base + i, 1, __ATOMIC_RELAXED);
        mem_end(&access);
        atomic_fetch_add(&race->accesses, 1);
    }
}

static void assert_poison(uint8_t *m)
{
    memset(m, 0xdd, 64);
    for (unsigned i = 0; i < 30; i++)
        os_cpu_relax();
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(m[i], 0xdd);
}

static void the_end_of_a_registration_is_the_end(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    NDK_MR *plain = mr_open(FALSE), *fast = mr_open(TRUE);
    struct os_thread *threads[2];
    struct race race = {0};
    unsigned long pended = 0;

    (void)state;
    assert_int_equal(initialize(fast, 1, TRUE), STATUS_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "writer", writer, &race), 0);
    for (unsigned turn = 0; turn < 1500; turn++) {
        unsigned long before = atomic_load(&race.accesses);
        struct outcome outcome = {0};
        NTSTATUS status;

        assert_int_equal(enrol(plain, mdl, PAGE_SIZE, 7), STATUS_SUCCESS);
        atomic_store(&race.address, (uintptr_t)m);
        atomic_store(&race.token, remote_of(plain));
        while (atomic_load(&race.accesses) == before)
            os_cpu_relax();
        status = plain->Dispatch->NdkDeregisterMr(plain, outcome_request, &outcome);
        pended += status == STATUS_PENDING;
        assert_int_equal(outcome_of(&outcome, status), STATUS_SUCCESS);
        assert_poison(m);

        before = atomic_load(&race.accesses);
        fast_register(fast, m, 1, 0x7000, BOTH);
        atomic_store(&race.address, 0x7000);
        atomic_store(&race.token, remote_of(fast));
        while (atomic_load(&race.accesses) == before)
            os_cpu_relax();
        {
            atomic_uint calls = 0;

            status = mr_invalidate(mr_from(fast), count_call, &calls);
            pended += status == STATUS_PENDING;
            if (status == STATUS_PENDING)
                while (atomic_load(&calls) == 0)
                    os_cpu_relax();
            else
                assert_int_equal(status, STATUS_SUCCESS);
        }
        assert_poison(m);
    }
    atomic_store(&race.stop, true);
    for (unsigned i = 0; i < 2; i++)
        os_thread_join(threads[i]);
    print_message("%lu accesses, %lu of 3000 ends pended\n", atomic_load(&race.accesses), pended);
    close_object(&plain->Header);
    close_object(&fast->Header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* Many invalidate one region that another thread closes: one wins, nobody meets a dead object. */
static void invalidator(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->stop)) {
        struct mr *mr = mr_find_fast(tokens(), atomic_load(&race->token), pd_from(the_pd), true);

        if (!mr)
            continue;
        atomic_fetch_add(&race->accesses, 1);
        (void)mr_invalidate(mr, NULL, NULL);
        object_unref(&mr->object);
    }
}

static void invalidation_against_close(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    struct os_thread *threads[2];
    struct race race = {0};

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "invalidator", invalidator, &race), 0);
    for (unsigned turn = 0; turn < 2000; turn++) {
        unsigned long before = atomic_load(&race.accesses);
        NDK_MR *mr = mr_open(TRUE);
        struct mr_fast *fast;

        assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
        assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
        atomic_store(&race.token, remote_of(mr));
        assert_int_equal(mr_fast_execute(fast), STATUS_SUCCESS);
        /* Closed as soon as it was met, or after a while. */
        for (unsigned i = 0; turn % 2 ? i < turn % 50 : atomic_load(&race.accesses) == before; i++)
            os_cpu_relax();
        close_object(&mr->Header);
    }
    atomic_store(&race.stop, true);
    for (unsigned i = 0; i < 2; i++)
        os_thread_join(threads[i]);
    print_message("%lu of 2000 regions were found while they lived\n", atomic_load(&race.accesses));
    munmap(m, PAGE_SIZE);
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
        TEST(initialization),
        TEST(what_a_fast_register_is_checked_for),
        TEST(a_filled_region),
        TEST(sinks_of_fast_registers_when_they_need_a_right),
        TEST(tokens_of_fast_registers),
        TEST(a_fast_register_needs_an_invalidation_first),
        TEST(an_invalidation_waits_for_accesses),
        TEST(a_close_with_a_fast_register_posted),
        TEST(finding_by_token),
        TEST(the_end_of_a_registration_is_the_end),
        TEST(invalidation_against_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
