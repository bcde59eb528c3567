// SPDX-License-Identifier: MIT
/*
 * Work requests (NDKPI 12, lifetime 6). DATA-001 is the pattern of a case with an obedient server:
 * only the client is written, and one function serves many rows.
 */
#include "kit.h"

/* A message of k->test->arg bytes each way. */
static VOID send_and_receive(struct kit *k)
{
    ULONG length = (ULONG)k->test->arg;
    struct kit_memory *out, *in;
    struct kit_request *receive, *send;
    struct kit_result result;
    struct kit_end end;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, length + 1, 0, &out));
    TRY(kit_memory_new(end.pd, length + 1, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    sge = kit_sge(in, 0, length + 1);
    TRY(kit_ok(receive = kit_receive(end.qp, &sge, 1)));
    TRY(kit_end_connect(&end, NULL));

    TRY(kit_order_receive(k, 1, length));
    kit_fill(out->data, length, 11);
    sge = kit_sge(out, 0, length);
    TRY(kit_ok(send = kit_send(end.qp, &sge, 1, 0)));
    TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, length, 11));

    TRY(kit_order_send(k, 1, length, 0, 12));
    TRY(kit_expect(receive, STATUS_SUCCESS, &result));
    CHECK_EQUAL(k, "bytes received", result.bytes, length);
    TRY(kit_filled(k, "the message received", in->data, length, 12));
    CHECK_EQUAL(k, "the byte behind the message", in->data[length], 0);
    TRY(kit_order_sent(k));
}

static const struct kit_case cases[] = {
    KIT_CASE_TWO("DATA-001", "a Send of no bytes each way", "NDKPI 12.2", "NdkSend", kit_obey,
                 send_and_receive, .arg = 0),
    KIT_CASE_TWO("DATA-002", "a Send of one byte each way", "NDKPI 12.2", "NdkSend", kit_obey,
                 send_and_receive, .arg = 1),
    KIT_CASE_TWO("DATA-003", "a Send of 100,000 bytes each way", "NDKPI 12.2", "NdkSend", kit_obey,
                 send_and_receive, .arg = 100000),
};

KIT_TOPIC(data, "work requests");
