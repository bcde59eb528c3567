// SPDX-License-Identifier: MIT
/* mpa_negotiate_test.c - what Request and Reply settle, from both ends. */
#include "iwarp/mpa.h"

#include <stdio.h>

#include "iwarp/test_vectors.h"

#define R       IWARP_RTR_READ
#define W       IWARP_RTR_WRITE
#define S       IWARP_RTR_SEND
#define UNKNOWN IWARP_MPA_DEPTH_UNKNOWN

static const struct iwarp_mpa_config defaults = {
    .revision = 2, .crc = true, .peer_to_peer = true, .ird = 16, .ord = 16};

static struct iwarp_mpa_frame request_of(bool a, uint8_t rtr, uint16_t ird, uint16_t ord)
{
    return (struct iwarp_mpa_frame){.kind = IWARP_MPA_REQUEST,
                                    .revision = 2,
                                    .enhanced = true,
                                    .peer_to_peer = a,
                                    .rtr = rtr,
                                    .ird = ird,
                                    .ord = ord};
}

static struct iwarp_mpa_frame reply_of(bool a, uint8_t rtr, uint16_t ird, uint16_t ord)
{
    struct iwarp_mpa_frame reply = request_of(a, rtr, ird, ord);

    reply.kind = IWARP_MPA_REPLY;
    return reply;
}

/* ---- responder ----------------------------------------------------------------------------- */

static void w28_to_w32_responder_chooses_rtr(void **state)
{
    static const struct {
        const char *name;
        bool a;
        uint8_t offer;
        uint8_t accepted;
        uint8_t chosen;
    } rows[] = {
        {"W-28 A=0", false, S | W | R, 0, 0},
        {"W-29 C and D", true, W | R, 0, R},
        {"W-30 D", true, R, 0, R},
        {"C", true, W, 0, W},
        {"W-31 B", true, S, 0, S},
        {"B and C", true, S | W, 0, W},
        {"B, C and D", true, S | W | R, 0, R},
        {"W-32 nothing", true, 0, 0, R},
        {"Write only here", true, W | R, W, W},
        {"sets do not meet", true, R, W, W},
        {"sets do not meet, B", true, W | R, S, S},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct iwarp_mpa_frame request = request_of(rows[i].a, rows[i].offer, 4, 4);
        struct iwarp_mpa_config config = defaults;
        struct iwarp_mpa_frame reply;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;

        config.rtr = rows[i].accepted;
        check_case(iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault) == IWARP_OK,
                   rows[i].name);
        check_case(reply.peer_to_peer == rows[i].a && reply.rtr == rows[i].chosen, rows[i].name);
        check_case(agreed.rtr == rows[i].chosen, rows[i].name);
        check_case(!reply.rejected && !reply.markers && reply.kind == IWARP_MPA_REPLY,
                   rows[i].name);
        check_case(agreed.ird_slots == agreed.ird + (rows[i].chosen == R ? 1 : 0), rows[i].name);
    }
}

static void w43_w44_w47_w48_responder_depths(void **state)
{
    static const struct {
        const char *name;
        uint16_t peer_ird, peer_ord, our_ird, our_ord;
        uint16_t reply_ird, reply_ord, ird, ord;
    } rows[] = {
        {"W-43", 16, 8, 4, 4, 4, 4, 4, 4},
        {"W-44", 2, 16, 16, 16, 16, 2, 16, 2},
        {"lowered to the peer", 1, 1, 16, 16, 1, 1, 1, 1},
        {"W-47", UNKNOWN, 8, 16, 12, 8, UNKNOWN, 8, 12},
        {"W-48", 8, UNKNOWN, 16, 12, UNKNOWN, 8, 16, 8},
        {"both unknown", UNKNOWN, UNKNOWN, 16, 12, UNKNOWN, UNKNOWN, 16, 12},
        {"M-19 above 128", 0x3ffe, 0x3ffe, 16, 16, 16, 16, 16, 16},
        {"W-49 peer IRD 0", 0, 4, 16, 16, 4, 0, 4, 0},
        {"no reads here", 4, 4, 0, 0, 0, 0, 0, 0},
        {"configured beyond the field", 0x3ffe, 0x3ffe, 0xffff, 0xffff, 0x3ffe, 0x3ffe, 0x3ffe,
         0x3ffe},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct iwarp_mpa_frame request = request_of(false, 0, rows[i].peer_ird, rows[i].peer_ord);
        struct iwarp_mpa_config config = defaults;
        struct iwarp_mpa_frame reply;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;

        config.ird = rows[i].our_ird;
        config.ord = rows[i].our_ord;
        check_case(iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault) == IWARP_OK,
                   rows[i].name);
        check_case(reply.ird == rows[i].reply_ird && reply.ord == rows[i].reply_ord, rows[i].name);
        check_case(agreed.ird == rows[i].ird && agreed.ord == rows[i].ord, rows[i].name);
        check_case(agreed.ird_slots == rows[i].ird, rows[i].name);
        check_case(agreed.peer_ird == rows[i].peer_ird && agreed.peer_ord == rows[i].peer_ord,
                   rows[i].name);
    }
}

/* W-30: a Read RTR needs one slot, which is shown to the peer but not reported. */
static void w30_read_rtr_has_a_slot(void **state)
{
    struct iwarp_mpa_frame request = request_of(true, R, 4, 0);
    struct iwarp_mpa_config config = defaults;
    struct iwarp_mpa_frame reply;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;

    (void)state;
    iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault);
    assert_int_equal(reply.ird, 1);
    assert_int_equal(agreed.ird, 0);
    assert_int_equal(agreed.ird_slots, 1);
    config.ird = 0;
    request.ord = 8;
    iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault);
    assert_int_equal(reply.ird, 1);
    assert_int_equal(agreed.ird, 0);
    config.ird = 5;
    iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault);
    assert_int_equal(reply.ird, 5);
    assert_int_equal(agreed.ird_slots, 6);
}

static void w16_w17_form_of_the_reply(void **state)
{
    struct iwarp_mpa_frame request = request_of(true, W | R, 4, 4);
    struct iwarp_mpa_frame reply;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;
    uint8_t octets[IWARP_MPA_FRAME_MAX];

    (void)state;
    iwarp_mpa_answer(&request, &defaults, &reply, &agreed, &fault);
    assert_true(reply.revision == 2 && reply.enhanced); /* W-17 */
    assert_int_equal(iwarp_mpa_put(octets, &reply), 24);

    request.enhanced = false; /* revision 2 without S */
    iwarp_mpa_answer(&request, &defaults, &reply, &agreed, &fault);
    assert_true(reply.revision == 2 && !reply.enhanced);

    request = (struct iwarp_mpa_frame){.kind = IWARP_MPA_REQUEST, .revision = 1};
    iwarp_mpa_answer(&request, &defaults, &reply, &agreed, &fault);
    assert_true(reply.revision == 1 && !reply.enhanced && reply.crc); /* W-16 */
    assert_int_equal(iwarp_mpa_put(octets, &reply), 20);
    assert_int_equal(octets[16], 0x40);
    assert_true(agreed.ird == 16 && agreed.ord == 16 && agreed.rtr == IWARP_RTR_NONE);
    assert_true(agreed.peer_ird == UNKNOWN && agreed.peer_ord == UNKNOWN);
    assert_int_equal(agreed.revision, 1);
}

static void w18_w19_w20_crc_of_the_responder(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 4; bits++) {
        struct iwarp_mpa_frame request = request_of(false, 0, 1, 1);
        struct iwarp_mpa_config config = defaults;
        struct iwarp_mpa_frame reply;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;

        request.crc = (bits & 1u) != 0;
        config.crc = (bits & 2u) != 0;
        iwarp_mpa_answer(&request, &config, &reply, &agreed, &fault);
        assert_int_equal(reply.crc, bits != 0);
        assert_int_equal(agreed.crc, bits != 0);
    }
}

static void w23_markers_are_refused(void **state)
{
    struct iwarp_mpa_frame request = request_of(true, W | R, 4, 4);
    struct iwarp_mpa_frame reply;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;
    uint8_t octets[IWARP_MPA_FRAME_MAX];

    (void)state;
    request.markers = true;
    assert_int_equal(iwarp_mpa_answer(&request, &defaults, &reply, &agreed, &fault), IWARP_REFUSE);
    assert_int_equal(fault, IWARP_MPA_FAULT_MARKERS);
    assert_true(reply.rejected && !reply.markers && reply.enhanced);
    assert_int_equal(iwarp_mpa_put(octets, &reply), 24);
    assert_int_equal(octets[16], 0x70);
}

static void w21_refusal_of_the_consumer(void **state)
{
    struct iwarp_mpa_frame request = request_of(true, W | R, 1, 1);
    struct iwarp_mpa_config config = defaults;
    struct iwarp_mpa_frame reply;
    uint8_t octets[IWARP_MPA_FRAME_MAX];
    size_t len;
    uint8_t *expected = octets_of(V_REPLY_REFUSED, &len);

    (void)state;
    config.ird = 4;
    config.ord = 32;
    iwarp_mpa_refuse(&request, &config, &reply);
    assert_int_equal(iwarp_mpa_put(octets, &reply), len);
    assert_memory_equal(octets, expected, len);
    free(expected);

    request = (struct iwarp_mpa_frame){.kind = IWARP_MPA_REQUEST, .revision = 1};
    iwarp_mpa_refuse(&request, &config, &reply);
    reply.private_data = (const uint8_t *)"no";
    reply.private_len = 2;
    assert_int_equal(iwarp_mpa_put(octets, &reply), 22);
    assert_int_equal(octets[16], 0x60);
}

/* The worked exchanges: our Reply to siw, and the Reply that chooses Read. */
static void worked_replies(void **state)
{
    static const struct {
        const char *request;
        const char *reply;
    } rows[] = {{V_REQUEST_SIW, V_REPLY_SIW}, {V_REQUEST_2, V_REPLY_READ}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t len;
        size_t consumed;
        uint8_t *octets = octets_of(rows[i].request, &len);
        uint8_t *expected;
        uint8_t encoded[IWARP_MPA_FRAME_MAX];
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame request;
        struct iwarp_mpa_frame reply;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;

        iwarp_mpa_parser_init(&parser, IWARP_MPA_REQUEST, 0);
        assert_int_equal(iwarp_mpa_parse(&parser, octets, len, &consumed, &request), IWARP_OK);
        assert_int_equal(iwarp_mpa_answer(&request, &defaults, &reply, &agreed, &fault), IWARP_OK);
        free(octets);
        expected = octets_of(rows[i].reply, &len);
        assert_int_equal(iwarp_mpa_put(encoded, &reply), len);
        assert_memory_equal(encoded, expected, len);
        free(expected);
    }
}

/* ---- initiator ----------------------------------------------------------------------------- */

static void w1_w3_requests(void **state)
{
    struct iwarp_mpa_config config = defaults;
    struct iwarp_mpa_frame request;
    uint8_t octets[IWARP_MPA_FRAME_MAX];
    size_t len;
    uint8_t *expected = octets_of(V_REQUEST_2, &len);

    (void)state;
    iwarp_mpa_make_request(&config, &request);
    assert_int_equal(iwarp_mpa_put(octets, &request), len);
    assert_memory_equal(octets, expected, len);
    free(expected);

    config.revision = 1;
    iwarp_mpa_make_request(&config, &request);
    request.private_data = (const uint8_t *)"hello";
    request.private_len = 5;
    expected = octets_of(V_REQUEST_1, &len);
    assert_int_equal(iwarp_mpa_put(octets, &request), len);
    assert_memory_equal(octets, expected, len);
    free(expected);

    config.revision = 2;
    config.rtr = S | W;
    iwarp_mpa_make_request(&config, &request);
    assert_int_equal(request.rtr, W); /* B is never offered */
    config.peer_to_peer = false;
    config.ird = 0xffff;
    iwarp_mpa_make_request(&config, &request);
    assert_true(request.rtr == 0 && !request.peer_to_peer);
    assert_int_equal(request.ird, 0x3ffe); /* 0x3fff means something else */
}

static void w33_to_w37_m18_initiator_chooses_rtr(void **state)
{
    static const struct {
        const char *name;
        bool asked;
        uint8_t offered;
        bool a;
        uint8_t reply;
        uint8_t send;
        iwarp_error error;
    } rows[] = {
        {"W-33 D", true, 0, true, R, R, 0},
        {"W-34 C", true, 0, true, W, W, 0},
        {"W-35 C and D", true, 0, true, W | R, R, 0},
        {"B and C", true, 0, true, S | W, W, 0},
        {"W-36 B", true, 0, true, S, 0, IWARP_ERR_MPA_RTR},
        {"no option", true, 0, true, 0, 0, IWARP_ERR_MPA_RTR},
        {"D though only C was offered", true, W, true, R, R, 0},
        {"W-37 A=0", true, 0, false, W | R, 0, 0},
        {"M-18 A=1 unasked", false, 0, true, R, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct iwarp_mpa_config config = defaults;
        struct iwarp_mpa_frame reply = reply_of(rows[i].a, rows[i].reply, 16, 16);
        struct iwarp_mpa_frame request;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;
        enum iwarp_verdict verdict;
        iwarp_error error;

        config.peer_to_peer = rows[i].asked;
        config.rtr = rows[i].offered;
        iwarp_mpa_make_request(&config, &request);
        verdict = iwarp_mpa_judge(&request, &config, &reply, &agreed, &error, &fault);
        check_case(error == rows[i].error, rows[i].name);
        check_case(verdict == (error != 0 ? IWARP_TERMINATE : IWARP_OK), rows[i].name);
        check_case(fault == (error != 0 ? IWARP_MPA_FAULT_RTR : IWARP_MPA_FAULT_NONE),
                   rows[i].name);
        check_case(error != 0 || agreed.rtr == rows[i].send, rows[i].name);
    }
}

static void w45_w46_m19_initiator_depths(void **state)
{
    static const struct {
        const char *name;
        uint16_t reply_ird, reply_ord;
        iwarp_error error;
        uint16_t ird, ord;
    } rows[] = {
        {"equal", 16, 16, 0, 16, 16},
        {"W-45", 2, 16, 0, 16, 2},
        {"W-46", 16, 32, IWARP_ERR_MPA_IRD, 0, 0},
        {"W-46 by one", 16, 17, IWARP_ERR_MPA_IRD, 0, 0},
        {"peer wants fewer", 16, 3, 0, 3, 16},
        {"M-19 IRD above 128", 1000, 16, 0, 16, 16},
        {"M-19 ORD above 128", 16, 1000, IWARP_ERR_MPA_IRD, 0, 0},
        {"M-19 both", 0x3ffe, 0x3ffe, IWARP_ERR_MPA_IRD, 0, 0},
        {"not negotiated", UNKNOWN, UNKNOWN, 0, 16, 16},
        {"W-49 IRD 0", 0, 0, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct iwarp_mpa_frame reply = reply_of(true, R, rows[i].reply_ird, rows[i].reply_ord);
        struct iwarp_mpa_frame request;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;
        enum iwarp_verdict verdict;
        iwarp_error error;

        iwarp_mpa_make_request(&defaults, &request);
        verdict = iwarp_mpa_judge(&request, &defaults, &reply, &agreed, &error, &fault);
        check_case(error == rows[i].error, rows[i].name);
        check_case(agreed.peer_ird == rows[i].reply_ird && agreed.peer_ord == rows[i].reply_ord,
                   rows[i].name);
        if (error != 0) {
            check_case(verdict == IWARP_TERMINATE && fault == IWARP_MPA_FAULT_IRD, rows[i].name);
            continue;
        }
        check_case(verdict == IWARP_OK, rows[i].name);
        check_case(agreed.ird == rows[i].ird && agreed.ord == rows[i].ord, rows[i].name);
    }
}

static void w8_m13_m15_replies_that_end_it(void **state)
{
    struct iwarp_mpa_frame reply = reply_of(true, R, 16, 16);
    struct iwarp_mpa_frame request;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;
    iwarp_error error;

    (void)state;
    iwarp_mpa_make_request(&defaults, &request);
    reply.markers = true; /* M-15 */
    assert_int_equal(iwarp_mpa_judge(&request, &defaults, &reply, &agreed, &error, &fault),
                     IWARP_CLOSE);
    assert_int_equal(fault, IWARP_MPA_FAULT_MARKERS);
    reply.rejected = true; /* W-8; the refusal comes first */
    assert_int_equal(iwarp_mpa_judge(&request, &defaults, &reply, &agreed, &error, &fault),
                     IWARP_REFUSE);
    assert_int_equal(fault, IWARP_MPA_FAULT_REJECTED);
    assert_int_equal(error, IWARP_NO_ERROR);
    reply = reply_of(true, R, 16, 16);
    reply.enhanced = false; /* M-13 */
    assert_int_equal(iwarp_mpa_judge(&request, &defaults, &reply, &agreed, &error, &fault),
                     IWARP_CLOSE);
    assert_int_equal(fault, IWARP_MPA_FAULT_PLAIN);
}

static void w13_revision_1(void **state)
{
    struct iwarp_mpa_config config = defaults;
    struct iwarp_mpa_frame reply = {.kind = IWARP_MPA_REPLY, .revision = 1};
    struct iwarp_mpa_frame request;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;
    iwarp_error error;

    (void)state;
    config.revision = 1;
    config.ird = 7;
    config.ord = 9;
    iwarp_mpa_make_request(&config, &request);
    assert_int_equal(iwarp_mpa_judge(&request, &config, &reply, &agreed, &error, &fault), IWARP_OK);
    assert_true(agreed.ird == 7 && agreed.ord == 9 && agreed.rtr == IWARP_RTR_NONE);
    assert_true(agreed.crc && agreed.revision == 1);
    reply.markers = true;
    assert_int_equal(iwarp_mpa_judge(&request, &config, &reply, &agreed, &error, &fault),
                     IWARP_CLOSE);
}

static void w20_crc_of_the_initiator(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 4; bits++) {
        struct iwarp_mpa_config config = defaults;
        struct iwarp_mpa_frame reply = reply_of(true, R, 16, 16);
        struct iwarp_mpa_frame request;
        struct iwarp_mpa_agreed agreed;
        enum iwarp_mpa_fault fault;
        iwarp_error error;

        config.crc = (bits & 1u) != 0;
        reply.crc = (bits & 2u) != 0;
        iwarp_mpa_make_request(&config, &request);
        assert_int_equal(request.crc, config.crc);
        iwarp_mpa_judge(&request, &config, &reply, &agreed, &error, &fault);
        assert_int_equal(agreed.crc, bits != 0);
    }
}

/* Both ends of ours: the same CRC, the same RTR, and each one's IRD is the other's ORD. */
static void both_ends_agree(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 4096; bits++) {
        struct iwarp_mpa_config active = {.revision = (uint8_t)(1 + (bits & 1u)),
                                          .crc = (bits & 2u) != 0,
                                          .peer_to_peer = (bits & 4u) != 0,
                                          .ird = (uint16_t)(1 + (bits >> 3 & 7u)),
                                          .ord = (uint16_t)(bits >> 6 & 7u)};
        struct iwarp_mpa_config passive = {.crc = (bits & 512u) != 0,
                                           .ird = (uint16_t)(1 + (bits >> 10 & 1u) * 4),
                                           .ord = (uint16_t)((bits >> 11 & 1u) * 6)};
        struct iwarp_mpa_frame request;
        struct iwarp_mpa_frame reply;
        struct iwarp_mpa_agreed a;
        struct iwarp_mpa_agreed p;
        enum iwarp_mpa_fault fault;
        iwarp_error error;

        iwarp_mpa_make_request(&active, &request);
        assert_int_equal(iwarp_mpa_answer(&request, &passive, &reply, &p, &fault), IWARP_OK);
        assert_int_equal(iwarp_mpa_judge(&request, &active, &reply, &a, &error, &fault), IWARP_OK);
        assert_int_equal(a.crc, p.crc);
        assert_int_equal(a.rtr, p.rtr);
        assert_int_equal(a.revision, p.revision);
        if (active.revision == 2) {
            assert_int_equal(a.ird, p.ord);
            assert_int_equal(a.ord, p.ird);
            assert_true(a.ord <= active.ord && p.ord <= passive.ord);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w28_to_w32_responder_chooses_rtr),
        cmocka_unit_test(w43_w44_w47_w48_responder_depths),
        cmocka_unit_test(w30_read_rtr_has_a_slot),
        cmocka_unit_test(w16_w17_form_of_the_reply),
        cmocka_unit_test(w18_w19_w20_crc_of_the_responder),
        cmocka_unit_test(w23_markers_are_refused),
        cmocka_unit_test(w21_refusal_of_the_consumer),
        cmocka_unit_test(worked_replies),
        cmocka_unit_test(w1_w3_requests),
        cmocka_unit_test(w33_to_w37_m18_initiator_chooses_rtr),
        cmocka_unit_test(w45_w46_m19_initiator_depths),
        cmocka_unit_test(w8_m13_m15_replies_that_end_it),
        cmocka_unit_test(w13_revision_1),
        cmocka_unit_test(w20_crc_of_the_initiator),
        cmocka_unit_test(both_ends_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
