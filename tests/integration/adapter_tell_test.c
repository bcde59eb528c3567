// SPDX-License-Identifier: MIT
/*
 * What a process tells of itself: all connections, listeners and shared endpoints, in lines that
 * are whole; addresses of consumers and of the host; a text that has no room for all; and a client
 * at the process's socket beside connections that come and go.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modes.h"
#include "ndis/interfaces.h"
#include "provider/adapter.h"
#include "provider/adapter_tell.h"
#include "stat/stat_testing.h"

/* How many lines there are that have both parts. */
static unsigned lines_with(const char *text, const char *part, const char *other)
{
    unsigned count = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char copy[600];

        assert_true((size_t)(end - line) < sizeof copy);
        memcpy(copy, line, (size_t)(end - line));
        copy[end - line] = '\0';
        if (copy[0] != '{' || copy[strlen(copy) - 1] != '}')
            test_fail("no whole line: %s", copy);
        count += strstr(copy, part) && strstr(copy, other);
    }
    return count;
}

static unsigned lines_of(const char *text, const char *kind)
{
    char part[60];

    snprintf(part, sizeof part, "{\"kind\":\"%s\"", kind);
    return lines_with(text, part, "");
}

/* Ends with the line of the end. */
static bool ends(const char *text, size_t length, bool complete)
{
    const char *tail = complete ? ",\"complete\":true}\n" : ",\"complete\":false}\n";

    return length > strlen(tail) && strcmp(text + length - strlen(tail), tail) == 0 &&
           lines_of(text, "end") == 1;
}

enum { PAIRS = 12 };

static void all_that_is_open_is_told(void **state)
{
    struct pair pairs[PAIRS];
    struct stat_text text = {0};
    char part[120], remote[OS_ADDR_TEXT_MAX];
    struct adapter_endpoint row[4];

    (void)state;
    for (int i = 0; i < PAIRS; i++)
        pair_open(&pairs[i], own_address(), NULL, NULL);
    adapter_tell(&text);
    assert_true(ends(text.at, text.length, true));
    assert_int_equal(lines_of(text.at, "process"), 1);
    assert_int_equal(strncmp(text.at, "{\"kind\":\"process\",\"format\":1,\"softndk\":\"", 39), 0);
    snprintf(part, sizeof part, "\"pid\":%u,", (unsigned)os_pid());
    assert_int_equal(lines_with(text.at, part, "\"program\":\""), 1);
    assert_int_equal(lines_with(text.at, "\"kind\":\"interface\"", "\"name\":\"lo\""), 1);
    assert_int_equal(lines_with(text.at, "\"ActiveConnection\":24,", "\"CQError\":0,"), 1);
    assert_int_equal(lines_of(text.at, "connection"), 2 * PAIRS);
    assert_int_equal(lines_with(text.at, "\"state\":\"established\"", ""), 2 * PAIRS);
    assert_int_equal(lines_of(text.at, "listener"), PAIRS);
    assert_int_equal(lines_with(text.at, "\"kind\":\"listener\"", "\"foreign\""), 0);
    /* Each client's own line. */
    for (int i = 0; i < PAIRS; i++) {
        struct adapter *client = adapter_from(pairs[i].client.adapter);

        assert_int_equal(adapter_snapshot(client, row, 4), 1);
        snprintf(part, sizeof part, "\"adapter\":%u,", (unsigned)client->object.id);
        snprintf(remote, sizeof remote, "%s", "");
        os_addr_text(&row->remote, true, remote);
        assert_int_equal(lines_with(text.at, part, remote), 1);
    }
    free(text.at);
    for (int i = 0; i < PAIRS; i++)
        pair_close(&pairs[i]);
    text = (struct stat_text){0};
    adapter_tell(&text); /* nothing is open, but it was */
    assert_true(ends(text.at, text.length, true));
    assert_int_equal(lines_of(text.at, "connection") + lines_of(text.at, "listener"), 0);
    assert_int_equal(lines_with(text.at, "\"ActiveConnection\":0,", ""), 1);
    free(text.at);
}

/* Every limit cuts between two lines, and says so. */
static void what_has_no_room_is_left_out_whole(void **state)
{
    struct stat_text whole = {0};
    struct pair pair;
    unsigned all;

    (void)state;
    pair_open(&pair, own_address(), NULL, NULL);
    adapter_tell(&whole);
    all = lines_with(whole.at, "", "");
    for (size_t limit = 300; limit < whole.length + 300; limit += 37) {
        struct stat_text text = {.limit = limit};
        char lines[40];
        unsigned count;

        adapter_tell(&text);
        assert_true(text.length <= limit);
        count = lines_with(text.at, "", "");
        snprintf(lines, sizeof lines, "\"lines\":%u,", count - 1);
        assert_int_equal(lines_with(text.at, "\"kind\":\"end\"", lines), 1);
        assert_true(ends(text.at, text.length, count == all));
        free(text.at);
    }
    free(whole.at);
    pair_close(&pair);
}

static void addresses_are_those_of_consumers_and_of_the_host(void **state)
{
    NDK_VERSION version = {2, 0};
    struct stat_text text = {0};
    struct listening listening;
    NDK_ADAPTER *adapter;
    char value[100], local[60], host[60];

    (void)state;
    snprintf(value, sizeof value, "12=10.9.8.1=%s", own_address());
    setenv("SOFTNDK_INTERFACES", value, 1);
    interfaces_forget();
    assert_int_equal(softndk_open_adapter("12", NULL, version, &adapter), STATUS_SUCCESS);
    listen_on(adapter, "10.9.8.1", &listening);
    adapter_tell(&text);
    snprintf(local, sizeof local, "\"index\":12,");
    assert_int_equal(lines_with(text.at, "\"kind\":\"listener\"", local), 1);
    snprintf(local, sizeof local, "\"local\":\"10.9.8.1:%u\"", inet_port(&listening.address));
    snprintf(host, sizeof host, "\"host_local\":\"%s:%u\"", own_address(),
             inet_port(&listening.address));
    assert_int_equal(lines_with(text.at, local, host), 1);
    free(text.at);
    CLOSE(listening.listener, NdkCloseListener);
    softndk_close_adapter(adapter);
    unsetenv("SOFTNDK_INTERFACES");
    interfaces_forget();
}

/* ---- at the socket -------------------------------------------------------------------------- */

static atomic_bool stop;
static atomic_uint asked;

/* Whole answers, as long as there is somebody to ask. */
static void *asks(void *unused)
{
    static char text[200000];
    char name[STAT_NAME_MAX];
    int dir = scratch_open();

    stat_name(os_pid(), name);
    while (!atomic_load(&stop)) {
        int fd = os_local_connect(dir, name);
        size_t length;

        if (fd < 0) {
            os_sleep_us(200);
            continue;
        }
        length = read_to_end(fd, text, sizeof text);
        /* The last adapter's close ends the answer that is under way. */
        if (length > 0 && ends(text, length, true))
            atomic_fetch_add(&asked, 1);
    }
    os_local_close(dir);
    return unused;
}

static void a_client_beside_connections(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    pthread_t thread;

    (void)state;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, asks, NULL), 0);
    for (int i = 0; i < 10 || atomic_load(&asked) < 10; i++) {
        struct pair pair;

        pair_open(&pair, own_address(), NULL, NULL);
        pair_close(&pair);
    }
    softndk_close_adapter(adapter);
    /* Also while first and last adapters come and go. */
    for (int i = 0; i < 20; i++)
        softndk_close_adapter(open_adapter(NULL));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_open_is_told),
        cmocka_unit_test(what_has_no_room_is_left_out_whole),
        cmocka_unit_test(addresses_are_those_of_consumers_and_of_the_host),
        cmocka_unit_test(a_client_beside_connections),
    };

    if (scratch_make(NULL) != 0)
        return 1;
    setenv("SOFTNDK_STAT", scratch, 1);
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
