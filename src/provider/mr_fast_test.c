// SPDX-License-Identifier: MIT
/* Fast-registration by the calls that a QP makes, and the ends of registrations of both kinds while
 * other threads access and invalidate. */
#include "provider/invalidate.h"
#include "provider/mr_test_calls.h"

#include "os/os_testing.h"

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

/* As a QP does it: token 0 for NdkInvalidate. */
static NTSTATUS end_of(NDK_MR *mr, uint32_t token, void (*done)(void *), void *context)
{
    return mr_invalidate(&mr_from(mr)->object, the_pd, token, done, context);
}

static void invalidate(NDK_MR *mr)
{
    assert_int_equal(end_of(mr, 0, must_not_be_called, NULL), STATUS_SUCCESS);
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
    assert_int_equal(end_of(mr, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    fast_register(mr, m, 1, 0, BOTH);
    token = remote_of(mr);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(ask(token, NULL, PAGE_SIZE, ACCESS_REMOTE_READ), ACCESS_OK); /* as it was */
    invalidate(mr);
    assert_int_equal(ask(token, NULL, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(end_of(mr, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    /* Never a registered one. */
    assert_int_equal(enrol(plain, mdl, PAGE_SIZE, 7), STATUS_SUCCESS);
    assert_int_equal(end_of(plain, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
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
    assert_int_equal(end_of(mr, 0, count_call, &calls), STATUS_PENDING);
    assert_int_equal(ask(local_of(mr), NULL, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(end_of(mr, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 10, 0, BOTH, &fast), STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_INVALID_DEVICE_REQUEST); /* too early */
    assert_int_equal(atomic_load(&calls), 0);
    mem_end(&access);
    assert_int_equal(atomic_load(&calls), 1);
    fast_register(mr, m, 1, 0, BOTH);
    /* A close during a pending invalidation. */
    assert_true(mem_hold(tokens(), local_of(mr), &access));
    assert_int_equal(end_of(mr, 0, count_call, &calls), STATUS_PENDING);
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

static struct object *find(uint32_t token, const struct pd *pd, enum mem_invalidator by)
{
    return invalidate_find(tokens(), token, pd, NULL, by);
}

static void finding_by_token(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE), *plain = mr_open(FALSE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    struct pd *pd = pd_from(the_pd), *other = pd_from(pd_open());
    struct object *found;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    assert_null(find(remote_of(mr), pd, MEM_BY_PEER)); /* not valid */
    fast_register(mr, m, 1, 0, BOTH);
    found = find(remote_of(mr), pd, MEM_BY_PEER);
    assert_ptr_equal(found, mr);
    object_unref(found);
    found = find(local_of(mr), pd, MEM_BY_READ);
    assert_ptr_equal(found, mr);
    object_unref(found);
    assert_null(find(local_of(mr), pd, MEM_BY_PEER));
    assert_null(find(remote_of(mr), pd, MEM_BY_READ));
    assert_null(find(remote_of(mr), other, MEM_BY_PEER));
    assert_null(find(remote_of(mr) ^ 1, pd, MEM_BY_PEER));
    assert_null(find(pd->privileged_token, pd, MEM_BY_PEER));
    assert_null(find(pd->privileged_token, pd, MEM_BY_READ));
    assert_null(find(0, pd, MEM_BY_PEER));
    invalidate(mr);
    assert_null(find(remote_of(mr), pd, MEM_BY_PEER));
    fast_register(mr, m, 1, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE); /* nothing for the peer */
    assert_null(find(remote_of(mr), pd, MEM_BY_PEER));
    assert_int_equal(enrol(plain, mdl, PAGE_SIZE, 7), STATUS_SUCCESS);
    assert_null(find(remote_of(plain), pd, MEM_BY_PEER));
    assert_null(find(local_of(plain), pd, MEM_BY_READ));
    close_object(&mr->Header);
    close_object(&plain->Header);
    close_object(&other->object.header);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* Between the look-up of a token and the invalidation another one may invalidate and register
 * anew. */
static void a_token_ends_no_later_registration(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE);
    uint32_t token;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    fast_register(mr, m, 1, 0, BOTH);
    token = remote_of(mr);
    invalidate(mr);
    fast_register(mr, m, 1, 0, BOTH);
    assert_int_equal(end_of(mr, token, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(ask(remote_of(mr), NULL, 1, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(end_of(mr, remote_of(mr), must_not_be_called, NULL), STATUS_SUCCESS);
    fast_register(mr, m, 1, 0, BOTH);
    assert_int_equal(end_of(mr, local_of(mr), must_not_be_called, NULL), STATUS_SUCCESS);
    close_object(&mr->Header);
    munmap(m, PAGE_SIZE);
}

/* Several that are flushed, or fail, do not leave the token of one of them as the answer. */
static void tokens_of_several_that_are_discarded(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    NDK_MR *mr = mr_open(TRUE);
    struct mr_fast *one, *two;
    uint32_t token;

    (void)state;
    assert_int_equal(initialize(mr, 1, TRUE), STATUS_SUCCESS);
    fast_register(mr, m, 1, 0, BOTH);
    token = remote_of(mr);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 1, 0, BOTH, &one), STATUS_SUCCESS);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 1, 0, BOTH, &two), STATUS_SUCCESS);
    mr_fast_discard(one); /* a flush goes in the order of the posts */
    assert_int_not_equal(remote_of(mr), token);
    mr_fast_discard(two);
    assert_int_equal(remote_of(mr), token);
    assert_int_equal(prepare(mr, 1, array_of(m, 1), 0, 1, 0, BOTH, &one), STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(one), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(remote_of(mr), token);
    close_object(&mr->Header);
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
    unsigned turn = 0;
    uint64_t begin = os_now_us();

    (void)state;
    assert_int_equal(initialize(fast, 1, TRUE), STATUS_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "writer", writer, &race), 0);
    for (; test_goes_on(turn, 1500, begin); turn++) {
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

            status = end_of(fast, 0, count_call, &calls);
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
    print_message("%lu accesses, %lu of %u ends pended\n", atomic_load(&race.accesses), pended,
                  2 * turn);
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
        uint32_t token = atomic_load(&race->token);
        struct object *mr = find(token, pd_from(the_pd), MEM_BY_PEER);

        if (!mr)
            continue;
        atomic_fetch_add(&race->accesses, 1);
        (void)mr->class->invalidate(mr, NULL, token, NULL, NULL);
        object_unref(mr);
    }
}

static void invalidation_against_close(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    struct os_thread *threads[2];
    struct race race = {0};
    unsigned turn = 0;
    uint64_t begin = os_now_us();

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "invalidator", invalidator, &race), 0);
    for (; test_goes_on(turn, 2000, begin); turn++) {
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
    print_message("%u regions, found %lu times while they lived\n", turn,
                  atomic_load(&race.accesses));
    munmap(m, PAGE_SIZE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)
    const struct CMUnitTest tests[] = {
        TEST(initialization),
        TEST(what_a_fast_register_is_checked_for),
        TEST(a_filled_region),
        TEST(sinks_of_fast_registers_when_they_need_a_right),
        TEST(tokens_of_fast_registers),
        TEST(a_fast_register_needs_an_invalidation_first),
        TEST(an_invalidation_waits_for_accesses),
        TEST(a_close_with_a_fast_register_posted),
        TEST(finding_by_token),
        TEST(a_token_ends_no_later_registration),
        TEST(tokens_of_several_that_are_discarded),
        TEST(the_end_of_a_registration_is_the_end),
        TEST(invalidation_against_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
