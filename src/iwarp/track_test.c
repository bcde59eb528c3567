// SPDX-License-Identifier: MIT
/* track_test.c - MSN, MO and length of untagged messages, read slots, the open read. */
#include "iwarp/track.h"

#include <stdio.h>

#include "iwarp/rdmap.h"
#include "iwarp/test_vectors.h"

static struct iwarp_segment send_segment(uint32_t msn, uint32_t mo, uint32_t len, bool last)
{
    return (struct iwarp_segment){.opcode = IWARP_OP_SEND,
                                  .qn = IWARP_QN_SEND,
                                  .msn = msn,
                                  .mo = mo,
                                  .payload_len = len,
                                  .last = last};
}

static struct iwarp_segment response_segment(uint32_t stag, uint64_t to, uint32_t len, bool last)
{
    return (struct iwarp_segment){.opcode = IWARP_OP_READ_RESPONSE,
                                  .tagged = true,
                                  .stag = stag,
                                  .to = to,
                                  .payload_len = len,
                                  .last = last};
}

/* Checks and advances; the length of a completed message, or -1. */
static int64_t accept_send(struct iwarp_track_rx *rx, struct iwarp_segment segment, uint32_t room)
{
    uint32_t len = 0;

    assert_int_equal(iwarp_track_send_check(rx, &segment, true, room), IWARP_NO_ERROR);
    return iwarp_track_send_advance(rx, &segment, &len) ? (int64_t)len : -1;
}

static iwarp_error check_send(const struct iwarp_track_rx *rx, struct iwarp_segment segment,
                              uint32_t room)
{
    return iwarp_track_send_check(rx, &segment, true, room);
}

static void w70_every_queue_starts_with_1(void **state)
{
    struct iwarp_track_tx tx;
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_tx_init(&tx);
    iwarp_track_rx_init(&rx);
    for (unsigned qn = 0; qn < IWARP_QN_COUNT; qn++) {
        assert_int_equal(rx.msn[qn], 1);
        assert_int_equal(iwarp_track_tx_take(&tx, qn), 1);
        assert_int_equal(iwarp_track_tx_take(&tx, qn), 2);
    }
}

static void w71_msn_wraps_to_0(void **state)
{
    struct iwarp_track_tx tx;
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_tx_init(&tx);
    iwarp_track_rx_init(&rx);
    tx.msn[IWARP_QN_SEND] = 0xffffffffu;
    rx.msn[IWARP_QN_SEND] = 0xffffffffu;
    assert_int_equal(iwarp_track_tx_take(&tx, IWARP_QN_SEND), 0xffffffffu);
    assert_int_equal(iwarp_track_tx_take(&tx, IWARP_QN_SEND), 0);
    assert_int_equal(accept_send(&rx, send_segment(0xffffffffu, 0, 4, true), 8), 4);
    assert_int_equal(accept_send(&rx, send_segment(0, 0, 5, true), 8), 5);
}

static void w72_w73_three_segments_one_message(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(accept_send(&rx, send_segment(1, 0, 1436, false), 4096), -1);
    assert_int_equal(accept_send(&rx, send_segment(1, 1436, 1436, false), 4096), -1);
    assert_int_equal(accept_send(&rx, send_segment(1, 2872, 100, true), 4096), 2972);
    assert_int_equal(accept_send(&rx, send_segment(2, 0, 0, true), 0), 0);
    assert_int_equal(rx.msn[IWARP_QN_SEND], 3);
}

static void m49_m50_sequence_numbers(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(check_send(&rx, send_segment(0, 0, 4, true), 8), IWARP_ERR_UNTAG_MSN);
    assert_int_equal(check_send(&rx, send_segment(2, 0, 4, true), 8), IWARP_ERR_UNTAG_MSN);
    accept_send(&rx, send_segment(1, 0, 4, true), 8);
    assert_int_equal(check_send(&rx, send_segment(1, 0, 4, true), 8), IWARP_ERR_UNTAG_MSN);
    assert_int_equal(check_send(&rx, send_segment(3, 0, 4, true), 8), IWARP_ERR_UNTAG_MSN);
}

static void m51_no_receive_then_one(void **state)
{
    struct iwarp_segment segment = send_segment(1, 0, 4, true);
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(iwarp_track_send_check(&rx, &segment, false, 0), IWARP_ERR_UNTAG_NO_BUFFER);
    assert_int_equal(iwarp_track_send_check(&rx, &segment, false, 0), IWARP_ERR_UNTAG_NO_BUFFER);
    assert_int_equal(accept_send(&rx, segment, 4), 4);
    segment.msn = 9; /* the MSN comes first */
    assert_int_equal(iwarp_track_send_check(&rx, &segment, false, 0), IWARP_ERR_UNTAG_MSN);
}

static void m52_m53_m54_offsets(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(check_send(&rx, send_segment(1, 4, 4, true), 64), IWARP_ERR_UNTAG_MO);
    assert_int_equal(check_send(&rx, send_segment(1, 0xfffffffeu, 4, true), 64),
                     IWARP_ERR_UNTAG_MO); /* M-54 */
    accept_send(&rx, send_segment(1, 0, 8, false), 64);
    assert_int_equal(check_send(&rx, send_segment(1, 12, 4, true), 64), IWARP_ERR_UNTAG_MO);
    assert_int_equal(check_send(&rx, send_segment(1, 4, 4, true), 64), IWARP_ERR_UNTAG_MO);
    assert_int_equal(check_send(&rx, send_segment(1, 0, 4, true), 64), IWARP_ERR_UNTAG_MO);
    assert_int_equal(accept_send(&rx, send_segment(1, 8, 4, true), 64), 12);
}

static void m55_m58_length(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(check_send(&rx, send_segment(1, 0, 9, true), 8), IWARP_ERR_UNTAG_LENGTH);
    assert_int_equal(check_send(&rx, send_segment(1, 0, 1, true), 0), IWARP_ERR_UNTAG_LENGTH);
    for (uint32_t mo = 0; mo < 8; mo += 2) { /* M-58: no end, but the receive has one */
        accept_send(&rx, send_segment(1, mo, 2, false), 8);
    }
    assert_int_equal(check_send(&rx, send_segment(1, 8, 2, false), 8), IWARP_ERR_UNTAG_LENGTH);
    assert_int_equal(accept_send(&rx, send_segment(1, 8, 0, true), 8), 8);
}

/* A receive of nearly 4 GiB and octets close to its end: the sum needs more than 32 bits. */
static void m54_no_wrap_at_the_end_of_a_huge_receive(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    rx.in_message = true;
    rx.opcode = IWARP_OP_SEND;
    rx.mo = 0xfffffff0u;
    assert_int_equal(check_send(&rx, send_segment(1, 0xfffffff0u, 0x20, true), 0xffffffffu),
                     IWARP_ERR_UNTAG_LENGTH);
    assert_int_equal(accept_send(&rx, send_segment(1, 0xfffffff0u, 0xf, true), 0xffffffffu),
                     0xffffffffu);
}

static void m56_changes_within_a_message(void **state)
{
    struct iwarp_segment segment = send_segment(1, 0, 4, false);
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    segment.opcode = IWARP_OP_SEND_INVALIDATE;
    segment.inv_stag = 0xa101;
    accept_send(&rx, segment, 64);
    segment.mo = 4;
    segment.msn = 2;
    assert_int_equal(check_send(&rx, segment, 64), IWARP_ERR_UNTAG_MSN);
    segment.msn = 1;
    segment.opcode = IWARP_OP_SEND;
    assert_int_equal(check_send(&rx, segment, 64), IWARP_ERR_OP_OPCODE);
    segment.opcode = IWARP_OP_SEND_INVALIDATE;
    segment.inv_stag = 0xa102;
    assert_int_equal(check_send(&rx, segment, 64), IWARP_ERR_OP_OPCODE);
    segment.inv_stag = 0xa101;
    segment.last = true;
    assert_int_equal(accept_send(&rx, segment, 64), 8);

    /* The field has no meaning for a plain Send, and a new message may have another opcode. */
    segment = send_segment(2, 0, 4, false);
    segment.inv_stag = 1;
    accept_send(&rx, segment, 64);
    segment.mo = 4;
    segment.inv_stag = 2;
    segment.last = true;
    assert_int_equal(accept_send(&rx, segment, 64), 8);
}

static void m57_empty_segments(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    for (unsigned i = 0; i < IWARP_TRACK_EMPTY_MAX; i++) {
        accept_send(&rx, send_segment(1, 0, 0, false), 64);
    }
    assert_int_equal(check_send(&rx, send_segment(1, 0, 0, false), 64), IWARP_ERR_UNTAG_MO);
    accept_send(&rx, send_segment(1, 0, 4, false), 64); /* progress: counted anew */
    for (unsigned i = 0; i < IWARP_TRACK_EMPTY_MAX; i++) {
        accept_send(&rx, send_segment(1, 4, 0, false), 64);
    }
    assert_int_equal(check_send(&rx, send_segment(1, 4, 0, false), 64), IWARP_ERR_UNTAG_MO);
    assert_int_equal(accept_send(&rx, send_segment(1, 4, 0, true), 64), 4);
    accept_send(&rx, send_segment(2, 0, 0, false), 64);
}

static void w41_rtr_send_uses_up_msn_1(void **state)
{
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(accept_send(&rx, send_segment(1, 0, 0, true), 0), 0);
    assert_int_equal(check_send(&rx, send_segment(1, 0, 4, true), 8), IWARP_ERR_UNTAG_MSN);
    assert_int_equal(accept_send(&rx, send_segment(2, 0, 4, true), 8), 4);
}

static void m66_read_request_slots(void **state)
{
    struct iwarp_segment segment = {
        .opcode = IWARP_OP_READ_REQUEST, .qn = IWARP_QN_READ_REQUEST, .msn = 1, .last = true};
    struct iwarp_track_rx rx;

    (void)state;
    iwarp_track_rx_init(&rx);
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 0, 0), IWARP_ERR_UNTAG_NO_BUFFER);
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 2, 2), IWARP_ERR_UNTAG_NO_BUFFER);
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 1, 2), IWARP_NO_ERROR);
    iwarp_track_request_advance(&rx);
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 0, 2), IWARP_ERR_UNTAG_MSN);
    segment.msn = 3;
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 2, 2), IWARP_ERR_UNTAG_MSN);
    segment.msn = 2;
    assert_int_equal(iwarp_track_request_check(&rx, &segment, 0, 2), IWARP_NO_ERROR);
    assert_int_equal(rx.msn[IWARP_QN_SEND], 1); /* W-70, W-96: queues are independent */
}

static const struct iwarp_read_request request = {
    .sink_stag = 0x2200, .sink_to = 0x7f00aa000000u, .size = 3000};

static void open_read(struct iwarp_track_read *read, uint32_t size)
{
    struct iwarp_read_request asked = request;

    asked.size = size;
    iwarp_track_read_open(read, &asked);
}

static bool accept_response(struct iwarp_track_read *read, struct iwarp_segment segment)
{
    assert_int_equal(iwarp_track_read_check(read, &segment), IWARP_NO_ERROR);
    return iwarp_track_read_advance(read, &segment);
}

static iwarp_error check_response(const struct iwarp_track_read *read, struct iwarp_segment segment)
{
    return iwarp_track_read_check(read, &segment);
}

static void w82_response_in_segments(void **state)
{
    struct iwarp_track_read read;

    (void)state;
    open_read(&read, 3000);
    assert_false(accept_response(&read, response_segment(0x2200, request.sink_to, 1440, false)));
    assert_false(
        accept_response(&read, response_segment(0x2200, request.sink_to + 1440, 1440, false)));
    assert_int_equal(read.remaining, 120);
    assert_true(
        accept_response(&read, response_segment(0x2200, request.sink_to + 2880, 120, true)));
    assert_int_equal(read.remaining, 0);
}

static void m74_none_open(void **state)
{
    (void)state;
    assert_int_equal(check_response(NULL, response_segment(1, 0, 4, true)), IWARP_ERR_OP_OPCODE);
    assert_int_equal(check_response(NULL, response_segment(1, 0, 0, true)), IWARP_ERR_OP_OPCODE);
}

static void m75_other_stag(void **state)
{
    struct iwarp_track_read read;

    (void)state;
    open_read(&read, 8);
    assert_int_equal(check_response(&read, response_segment(0x2201, request.sink_to, 8, true)),
                     IWARP_ERR_TAG_STAG);
}

static void m76_offset_and_size(void **state)
{
    struct iwarp_track_read read;
    uint64_t to = request.sink_to;

    (void)state;
    open_read(&read, 8);
    assert_int_equal(check_response(&read, response_segment(0x2200, to + 1, 7, false)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_int_equal(check_response(&read, response_segment(0x2200, to, 9, true)),
                     IWARP_ERR_TAG_BOUNDS);
    accept_response(&read, response_segment(0x2200, to, 4, false));
    assert_int_equal(check_response(&read, response_segment(0x2200, to, 4, true)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_int_equal(check_response(&read, response_segment(0x2200, to + 4, 5, true)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_true(accept_response(&read, response_segment(0x2200, to + 4, 4, true)));
}

static void m77_last_too_early(void **state)
{
    struct iwarp_track_read read;

    (void)state;
    open_read(&read, 8);
    assert_int_equal(check_response(&read, response_segment(0x2200, request.sink_to, 4, true)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_int_equal(check_response(&read, response_segment(0x2200, request.sink_to, 0, true)),
                     IWARP_ERR_TAG_BOUNDS);
}

static void m78_complete_without_last(void **state)
{
    struct iwarp_track_read read;
    uint64_t to = request.sink_to;

    (void)state;
    open_read(&read, 8);
    assert_false(accept_response(&read, response_segment(0x2200, to, 8, false)));
    assert_int_equal(check_response(&read, response_segment(0x2200, to + 8, 1, true)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_int_equal(check_response(&read, response_segment(0x2200, to + 8, 0, true)),
                     IWARP_ERR_TAG_BOUNDS);
    assert_int_equal(check_response(&read, response_segment(0x2200, to + 8, 0, false)),
                     IWARP_ERR_TAG_BOUNDS);
}

/* W-84, W-85, trap 18: a Response without payload is not checked for STag and TO. */
static void w85_empty_response(void **state)
{
    struct iwarp_track_read read;

    (void)state;
    open_read(&read, 0);
    assert_true(accept_response(&read, response_segment(0xffffffffu, 5, 0, true)));
    open_read(&read, 0);
    assert_int_equal(check_response(&read, response_segment(0x2200, request.sink_to, 1, true)),
                     IWARP_ERR_TAG_BOUNDS);
}

static void m57_empty_response_segments_are_bounded(void **state)
{
    struct iwarp_track_read read;
    struct iwarp_segment empty = response_segment(0x2200, request.sink_to, 0, false);

    (void)state;
    open_read(&read, 8);
    for (unsigned i = 0; i < IWARP_TRACK_EMPTY_MAX; i++) {
        assert_false(accept_response(&read, empty));
    }
    assert_int_equal(check_response(&read, empty), IWARP_ERR_TAG_BOUNDS);
    assert_true(accept_response(&read, response_segment(0x2200, request.sink_to, 8, true)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w70_every_queue_starts_with_1),
        cmocka_unit_test(w71_msn_wraps_to_0),
        cmocka_unit_test(w72_w73_three_segments_one_message),
        cmocka_unit_test(m49_m50_sequence_numbers),
        cmocka_unit_test(m51_no_receive_then_one),
        cmocka_unit_test(m52_m53_m54_offsets),
        cmocka_unit_test(m55_m58_length),
        cmocka_unit_test(m54_no_wrap_at_the_end_of_a_huge_receive),
        cmocka_unit_test(m56_changes_within_a_message),
        cmocka_unit_test(m57_empty_segments),
        cmocka_unit_test(w41_rtr_send_uses_up_msn_1),
        cmocka_unit_test(m66_read_request_slots),
        cmocka_unit_test(w82_response_in_segments),
        cmocka_unit_test(m74_none_open),
        cmocka_unit_test(m75_other_stag),
        cmocka_unit_test(m76_offset_and_size),
        cmocka_unit_test(m77_last_too_early),
        cmocka_unit_test(m78_complete_without_last),
        cmocka_unit_test(w85_empty_response),
        cmocka_unit_test(m57_empty_response_segments_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
