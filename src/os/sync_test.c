// SPDX-License-Identifier: MIT
/* Clocks, deadlines, futexes, detached threads, call stacks and files: os_sync.h, os_trace.h,
 * os_file.h. */
#define _GNU_SOURCE 1

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/os_file.h"
#include "os/os_sync.h"
#include "os/os_testing.h"
#include "os/os_trace.h"

#define MS_100NS 10000ull

/* ---- clocks --------------------------------------------------------------------------------- */

static void deadlines_are_of_a_clock(void **state)
{
    struct os_deadline never = {.clock = OS_NEVER};
    struct os_deadline mono = {.clock = OS_MONO, .at_100ns = os_mono_100ns() + 20 * MS_100NS};
    struct os_deadline wall = {.clock = OS_WALL, .at_100ns = os_wall_100ns() + 20 * MS_100NS};
    struct os_deadline old = {.clock = OS_WALL, .at_100ns = 1};

    (void)state;
    assert_false(os_deadline_passed(&never));
    assert_true(os_deadline_passed(&old));
    os_sleep_until(&old);
    os_sleep_until(&mono);
    assert_true(os_deadline_passed(&mono));
    os_sleep_until(&wall);
    assert_true(os_deadline_passed(&wall));
    assert_in_range(os_wall_100ns() / 10000000 - 11644473600ull, (uint64_t)time(NULL) - 5,
                    (uint64_t)time(NULL) + 5);
}

struct meeting {
    os_mutex lock;
    os_cond met;
    int step;
};

static void step_on(void *arg)
{
    struct meeting *m = arg;

    os_mutex_lock(&m->lock);
    m->step++;
    os_cond_signal(&m->met);
    os_mutex_unlock(&m->lock);
}

static void conditions_wait_by_either_clock(void **state)
{
    struct meeting m = {.lock = OS_MUTEX_INITIALIZER, .met = OS_COND_INITIALIZER};
    enum os_clock clocks[] = {OS_MONO, OS_WALL, OS_NEVER};

    (void)state;
    os_mutex_lock(&m.lock);
    for (int i = 0; i < 3; i++) {
        struct os_deadline soon = {.clock = clocks[i]}, late = {.clock = clocks[i]};

        soon.at_100ns = late.at_100ns = i == 0 ? os_mono_100ns() : os_wall_100ns();
        soon.at_100ns += 20 * MS_100NS;
        late.at_100ns += 60000 * MS_100NS;
        if (clocks[i] != OS_NEVER) {
            while (os_cond_wait_deadline(&m.met, &m.lock, &soon))
                ;
            assert_true(os_deadline_passed(&soon));
        }
        assert_int_equal(os_thread_start_detached("meet", step_on, &m), 0);
        while (m.step == i)
            assert_true(os_cond_wait_deadline(&m.met, &m.lock, &late));
    }
    os_mutex_unlock(&m.lock);
}

/* ---- words ---------------------------------------------------------------------------------- */

struct word {
    uint32_t word;
    atomic_int through;
};

static void wait_on_word(void *arg)
{
    struct word *w = arg;

    while (__atomic_load_n(&w->word, __ATOMIC_ACQUIRE) == 0)
        os_futex_wait(&w->word, 0);
    atomic_fetch_add(&w->through, 1);
}

static void a_word_wakes_who_waits_for_its_change(void **state)
{
    struct word w = {.word = 7};
    struct os_thread *threads[3];

    (void)state;
    os_futex_wait(&w.word, 0); /* it is not 0: returns at once */
    w.word = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(os_thread_start(&threads[i], "futex", wait_on_word, &w), 0);
    os_sleep_us(20000);
    assert_int_equal(atomic_load(&w.through), 0);
    __atomic_store_n(&w.word, 1, __ATOMIC_RELEASE);
    os_futex_wake(&w.word, 1);
    assert_true(TEST_WAIT(atomic_load(&w.through) >= 1));
    os_futex_wake(&w.word, 100);
    for (int i = 0; i < 3; i++)
        os_thread_join(threads[i]);
    assert_int_equal(atomic_load(&w.through), 3);
}

/* ---- threads -------------------------------------------------------------------------------- */

static atomic_uint ids[8];
static atomic_int ended;

static void tell_id(void *arg)
{
    atomic_store(&ids[(intptr_t)arg], os_thread_id());
    assert_int_equal(atomic_load(&ids[(intptr_t)arg]), os_thread_id());
    while (!atomic_load(&ended))
        os_sleep_us(100);
    atomic_fetch_add(&ended, 1);
    os_thread_exit();
}

static void ask_signal_stack(void *arg)
{
    stack_t there = {.ss_flags = SS_DISABLE};

    sigaltstack(NULL, &there);
    atomic_store((atomic_int *)arg, there.ss_flags & SS_DISABLE ? -1 : 1);
}

static void threads_can_tell_of_a_stack_that_is_used_up(void **state)
{
    atomic_int has = 0; /* 1: a stack for signals, -1: none */
    struct os_thread *thread;

    (void)state;
    assert_int_equal(os_thread_start(&thread, "signals", ask_signal_stack, &has), 0);
    os_thread_join(thread);
    assert_int_equal(atomic_load(&has), 1);
}

static void threads_have_numbers_and_need_no_join(void **state)
{
    (void)state;
    for (intptr_t i = 0; i < 8; i++)
        assert_int_equal(os_thread_start_detached("id", tell_id, (void *)i), 0);
    for (int i = 0; i < 8; i++)
        assert_true(TEST_WAIT(atomic_load(&ids[i])));
    for (int i = 0; i < 8; i++) {
        assert_in_range(atomic_load(&ids[i]), 1, (1u << 30) - 1);
        assert_true(atomic_load(&ids[i]) != os_thread_id());
        for (int j = 0; j < i; j++)
            assert_true(atomic_load(&ids[i]) != atomic_load(&ids[j]));
    }
    atomic_store(&ended, 1);
    assert_true(TEST_WAIT(atomic_load(&ended) == 9));
    assert_true(os_cpu_current() < os_cpu_count());
    assert_int_equal(os_fault_set("thread", 1, EAGAIN, false), 0);
    assert_int_equal(os_thread_start_detached("id", tell_id, NULL), -EAGAIN);
    os_fault_clear();
}

static void processor_time_is_the_threads_own(void **state)
{
    uint64_t start = os_thread_cpu_us(), wall;

    (void)state;
    os_sleep_us(50000);
    assert_in_range(os_thread_cpu_us() - start, 0, 40000);
    wall = os_now_us();
    while (os_thread_cpu_us() - start < 50000 && os_now_us() - wall < TEST_LIMIT_US)
        ;
    assert_true(os_thread_cpu_us() - start >= 50000);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

static __attribute__((noinline)) unsigned inner(void **frames, unsigned max, bool known)
{
    unsigned n = os_trace(frames, max, known ? __builtin_return_address(0) : (void *)&inner);

    __asm__ __volatile__("" ::: "memory"); /* no tail call */
    return n;
}

static __attribute__((noinline)) unsigned outer(void **frames, unsigned max, bool known)
{
    unsigned n = inner(frames, max, known);

    __asm__ __volatile__("" ::: "memory");
    return n;
}

/* So much that malloc() has it from the system, and counts it apart. */
#define LARGE ((size_t)64 << 20)

static void *of_another_thread;

static void take_memory(void *unused)
{
    (void)unused;
    of_another_thread = os_thread_memory(OS_THREAD_STACKS, LARGE);
}

static void memory_of_a_thread_is_its_own_and_goes_with_it(void **state)
{
    size_t before = mallinfo2().hblkhd;
    unsigned char *mine;
    struct os_thread *thread;

    (void)state;
    assert_null(os_thread_memory(OS_THREAD_ERROR, 0));
    mine = os_thread_memory(OS_THREAD_ERROR, 100);
    assert_non_null(mine);
    assert_int_equal(mine[99], 0);
    mine[99] = 7;
    assert_int_equal(os_thread_start(&thread, "memory", take_memory, NULL), 0);
    os_thread_join(thread);
    assert_non_null(of_another_thread);
    assert_ptr_not_equal(of_another_thread, mine);
    assert_ptr_equal(os_thread_memory(OS_THREAD_ERROR, 100), mine);
    assert_ptr_equal(os_thread_memory(OS_THREAD_ERROR, 0), mine);
    assert_int_equal(mine[99], 7);
    assert_true(mallinfo2().hblkhd < before + LARGE);
}

static void a_stack_begins_where_it_is_asked_to(void **state)
{
    void *frames[16];
    unsigned n;

    (void)state;
    n = outer(frames, 16, true);
    assert_true(n >= 3);
    assert_in_range((uintptr_t)frames[0], (uintptr_t)outer, (uintptr_t)outer + 300);
    assert_in_range((uintptr_t)frames[1], (uintptr_t)a_stack_begins_where_it_is_asked_to,
                    (uintptr_t)a_stack_begins_where_it_is_asked_to + 2000);
    assert_int_equal(outer(frames, 2, true), 2);
    assert_int_equal(outer(frames, 1, true), 1);
    assert_in_range((uintptr_t)frames[0], (uintptr_t)outer, (uintptr_t)outer + 300);
    assert_int_equal(outer(frames, 0, true), 0);
    assert_int_equal(outer(frames, 16, false), 1); /* not among the callers */
    assert_ptr_equal(frames[0], (void *)&inner);
}

/* Two callers of one shape, so that the stack pointer is the same and only a return address tells
 * them apart. */
static __attribute__((noinline)) unsigned by_left(void **frames)
{
    unsigned n = outer(frames, 8, true);

    __asm__ __volatile__("nop" ::: "memory");
    return n;
}

static __attribute__((noinline)) unsigned by_right(void **frames)
{
    unsigned n = outer(frames, 8, true);

    __asm__ __volatile__("nop; nop" ::: "memory");
    return n;
}

static void a_remembered_stack_is_the_right_one(void **state)
{
    unsigned (*const ways[2])(void **) = {by_left, by_right};

    (void)state;
    for (volatile int i = 0; i < 20; i = i + 1) {
        void *frames[8] = {NULL};
        uintptr_t way = (uintptr_t)ways[i / 2 % 2], other = (uintptr_t)ways[1 - i / 2 % 2];

        assert_true(ways[i / 2 % 2](frames) >= 3);
        assert_in_range((uintptr_t)frames[0], (uintptr_t)outer, (uintptr_t)outer + 300);
        /* Inside this one, however long instrumentation makes it, and not inside the other. */
        assert_in_range((uintptr_t)frames[1], way, other > way ? other - 1 : way + 300);
    }
}

static void addresses_have_names(void **state)
{
    char text[OS_SYMBOL_MAX];

    (void)state;
    assert_non_null(strstr(os_symbol((const char *)(uintptr_t)getenv + 2, text), "getenv"));
    assert_non_null(strstr(text, "(")); /* and the file it is in */
    assert_non_null(strstr(os_symbol((const char *)(uintptr_t)inner + 5, text), "os_sync_test"));
    assert_non_null(strstr(os_symbol((void *)16, text), "0x10"));
    os_symbol(NULL, text);
    assert_true(os_same_module((void *)(uintptr_t)inner, (void *)(uintptr_t)outer));
    assert_false(os_same_module((void *)(uintptr_t)inner, (void *)16));
}

/* ---- files ---------------------------------------------------------------------------------- */

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[2][400];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static void files_are_written_and_read(void **state)
{
    struct os_file_info info, same;
    size_t length;
    char *text;
    int fd;

    (void)state;
    assert_int_equal(os_file_open(in_dir("f"), OS_FILE_READ), -ENOENT);
    fd = os_file_open(in_dir("f"), OS_FILE_WRITE | OS_FILE_CREATE);
    assert_true(fd >= 0);
    assert_int_equal(os_file_write(fd, "abcdef", 6, 0), 0);
    assert_int_equal(os_file_write(fd, "XY", 2, 2), 0);
    assert_int_equal(os_file_write(fd, "end", 3, -1), 0);
    assert_int_equal(os_file_size(fd), 9);
    assert_int_equal(os_file_close(fd), 0);
    assert_int_equal(os_file_open(in_dir("f"), OS_FILE_WRITE | OS_FILE_CREATE | OS_FILE_EXCLUSIVE),
                     -EEXIST);
    assert_int_equal(os_file_read(in_dir("f"), 100, &text, &length), 0);
    assert_string_equal(text, "abXYefend");
    free(text);
    fd = os_file_open(in_dir("f"), OS_FILE_READ | OS_FILE_WRITE);
    assert_int_equal(os_file_truncate(fd), 0);
    assert_int_equal(os_file_size(fd), 0);
    os_file_close(fd);
    assert_int_equal(os_file_info(in_dir("f"), &info), 0);
    assert_false(info.directory);
    assert_int_equal(os_file_rename(in_dir("f"), in_dir("g")), 0);
    assert_int_equal(os_file_info(in_dir("f"), &same), -ENOENT);
    assert_int_equal(os_file_info(in_dir("g"), &same), 0);
    assert_int_equal(same.id, info.id);
    assert_int_equal(same.volume, info.volume);
    assert_int_equal(os_file_remove(in_dir("g")), 0);
    assert_int_equal(os_file_remove(in_dir("g")), -ENOENT);
}

static void directories_are_searched_in_any_case(void **state)
{
    struct os_file_info info;
    char found[256];
    struct stat st;

    (void)state;
    assert_int_equal(os_dir_make(in_dir("Name")), 0);
    assert_int_equal(os_dir_make(in_dir("Name")), -EEXIST);
    assert_int_equal(stat(in_dir("Name"), &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_int_equal(os_file_info(in_dir("Name"), &info), 0);
    assert_true(info.directory);
    assert_int_equal(os_dir_find(dir, "nAME", found), 0);
    assert_string_equal(found, "Name");
    assert_int_equal(os_dir_make(in_dir("NAME")), 0);
    assert_int_equal(os_dir_find(dir, "NAME", found), 0);
    assert_string_equal(found, "NAME"); /* the exact one wins */
    assert_int_equal(os_dir_find(dir, "Name", found), 0);
    assert_string_equal(found, "Name");
    assert_int_equal(os_dir_find(dir, "other", found), -ENOENT);
    assert_int_equal(os_dir_find(in_dir("none"), "x", found), -ENOENT);
    assert_true(os_temp_dir()[0] != '\0');
    assert_int_equal(os_user_id(), getuid());
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/softndk-os-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    os_file_remove(in_dir("Name"));
    os_file_remove(in_dir("NAME"));
    return os_file_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_are_of_a_clock),
        cmocka_unit_test(conditions_wait_by_either_clock),
        cmocka_unit_test(a_word_wakes_who_waits_for_its_change),
        cmocka_unit_test(threads_have_numbers_and_need_no_join),
        cmocka_unit_test(threads_can_tell_of_a_stack_that_is_used_up),
        cmocka_unit_test(processor_time_is_the_threads_own),
        cmocka_unit_test(memory_of_a_thread_is_its_own_and_goes_with_it),
        cmocka_unit_test(a_stack_begins_where_it_is_asked_to),
        cmocka_unit_test(a_remembered_stack_is_the_right_one),
        cmocka_unit_test(addresses_have_names),
        cmocka_unit_test(files_are_written_and_read),
        cmocka_unit_test(directories_are_searched_in_any_case),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
