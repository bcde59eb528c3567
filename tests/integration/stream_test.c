// SPDX-License-Identifier: MIT
/*
 * softndk_stream() says what is in force, which is not what either end asked for: a CRC when one of
 * them wants it, the older MPA revision, and FPDUs by each end's own limit and segment size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../support/ends.h"

#include <cmocka.h>

static struct softndk_stream stream_of(const struct end *end)
{
    struct softndk_stream stream;

    memset(&stream, 0xaa, sizeof stream);
    assert_int_equal(softndk_stream(end->qp, &stream), STATUS_SUCCESS);
    return stream;
}

static void both_ends_have_a_say(void **state)
{
    static const struct {
        const char *client, *server;
        bool crc;
        unsigned revision;
    } cases[] = {
        {"crc=1", "crc=1", true, 2},
        {"crc=0", "crc=0", false, 2},
        {"crc=0", "crc=1", true, 2},
        {"crc=1", "crc=0", true, 2},
        {"mpa_revision=1,crc=0", "crc=0", false, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;

        pair_open(&pair, "127.0.0.1", cases[i].client, cases[i].server);
        assert_int_equal(stream_of(&pair.client).crc, cases[i].crc);
        assert_int_equal(stream_of(&pair.server).crc, cases[i].crc);
        assert_int_equal(stream_of(&pair.client).mpa_revision, cases[i].revision);
        assert_int_equal(stream_of(&pair.server).mpa_revision, cases[i].revision);
        pair_close(&pair);
    }
}

static void each_end_has_its_fpdus(void **state)
{
    struct pair pair;
    ULONG by_segment;

    (void)state;
    pair_open(&pair, "127.0.0.1", "fpdu_max=1422", NULL);
    assert_int_equal(stream_of(&pair.client).fpdu_payload, 1422);
    by_segment = stream_of(&pair.server).fpdu_payload;
    assert_in_range(by_segment, 128, 65534);
    assert_int_not_equal(by_segment, 1422);
    pair_close(&pair);
    pair_open(&pair, "127.0.0.1", "fpdu_max=65535", "profile=iwarp-rnic");
    assert_int_equal(stream_of(&pair.client).fpdu_payload, by_segment); /* a limit, no more */
    assert_int_equal(stream_of(&pair.server).fpdu_payload, 1454);
    pair_close(&pair);
}

static void without_a_connection(void **state)
{
    struct softndk_stream stream, before;
    struct pair pair;
    struct end end;

    (void)state;
    memset(&before, 0xaa, sizeof before);
    stream = before;
    memset(&end, 0, sizeof end);
    end_open(&end, NULL);
    assert_int_equal(softndk_stream(end.qp, &stream), STATUS_CONNECTION_INVALID);
    assert_memory_equal(&stream, &before, sizeof stream);
    assert_int_equal(softndk_stream(end.qp, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_stream(NULL, &stream), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_stream((const NDK_QP *)(const void *)end.pd, &stream),
                     STATUS_INVALID_PARAMETER);
    end_close(&end);

    pair_open(&pair, "127.0.0.1", NULL, NULL);
    CLOSE(pair.client.connector, NdkCloseConnector);
    pair.client.connector = NULL;
    wait_until(softndk_stream(pair.client.qp, &stream) == STATUS_CONNECTION_INVALID,
               "the end of the connection at its own end");
    stream = before;
    assert_int_equal(softndk_stream(pair.client.qp, &stream), STATUS_CONNECTION_INVALID);
    assert_memory_equal(&stream, &before, sizeof stream);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_have_a_say),
        cmocka_unit_test(each_end_has_its_fpdus),
        cmocka_unit_test(without_a_connection),
    };

    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
