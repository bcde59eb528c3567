// SPDX-License-Identifier: MIT
/* rdmap_test.c - every published message decoded field by field and encoded again; bad segments. */
#include "iwarp/rdmap.h"

#include <stdio.h>

#include "iwarp/fpdu.h"
#include "iwarp/test_vectors.h"

/* A decoded FPDU that keeps its octets. */
struct sample {
    uint8_t *octets;
    size_t len;
    struct iwarp_segment segment;
};

/* The FPDU passes framing and decoding. */
static struct sample decode(const char *text, unsigned flags)
{
    struct sample sample;
    struct iwarp_fpdu fpdu;

    sample.octets = octets_of(text, &sample.len);
    assert_int_equal(iwarp_fpdu_parse(sample.octets, sample.len, true, &fpdu), IWARP_OK);
    assert_int_equal(fpdu.size, sample.len);
    assert_int_equal(iwarp_rdmap_decode(fpdu.ulpdu, fpdu.ulpdu_len, flags, &sample.segment),
                     IWARP_OK);
    assert_int_equal(sample.segment.error, IWARP_NO_ERROR);
    return sample;
}

/* `fpdu` holds header and payload, `len` octets: adds the trailer and compares with the sample. */
static void check_encoded(struct sample *sample, uint8_t *fpdu, size_t len)
{
    len += iwarp_fpdu_put_trailer(fpdu + len, true, fpdu, len, NULL, 0);
    assert_int_equal(len, sample->len);
    assert_memory_equal(fpdu, sample->octets, len);
    free(sample->octets);
}

static void w77_w78_send(void **state)
{
    struct sample sample = decode(V_SEND, 0);
    const struct iwarp_segment *s = &sample.segment;
    uint8_t fpdu[64];
    size_t len;

    (void)state;
    assert_int_equal(s->opcode, IWARP_OP_SEND);
    assert_true(!s->tagged && s->last);
    assert_int_equal(s->qn, 0);
    assert_int_equal(s->msn, 1);
    assert_int_equal(s->mo, 0);
    assert_int_equal(s->payload_len, 16);
    assert_true(iwarp_get_be64(s->payload) == 0x7f0012345000u);
    assert_int_equal(iwarp_get_be32(s->payload + 8), 0xa101);
    assert_int_equal(iwarp_get_be32(s->payload + 12), 64);
    len = iwarp_rdmap_put_send(fpdu, IWARP_OP_SEND, 0x7777, 1, 0, 16, true); /* W-78: no STag */
    assert_int_equal(len, 20);
    memcpy(fpdu + len, s->payload, 16);
    check_encoded(&sample, fpdu, len + 16);
}

static void w77_write(void **state)
{
    struct sample sample = decode(V_WRITE, 0);
    const struct iwarp_segment *s = &sample.segment;
    uint8_t fpdu[64];
    size_t len;

    (void)state;
    assert_int_equal(s->opcode, IWARP_OP_WRITE);
    assert_true(s->tagged && s->last);
    assert_int_equal(s->stag, 0x1234);
    assert_true(s->to == 0x10000010);
    assert_int_equal(s->payload_len, 5);
    assert_memory_equal(s->payload, "hello", 5);
    len = iwarp_rdmap_put_write(fpdu, 0x1234, 0x10000010, 5, true);
    assert_int_equal(len, 16);
    memcpy(fpdu + len, "hello", 5);
    check_encoded(&sample, fpdu, len + 5);
}

static void w77_read_request_and_response(void **state)
{
    const struct iwarp_read_request request = {.sink_stag = 0x2200,
                                               .sink_to = 0x7f00aa000000u,
                                               .size = 64,
                                               .source_stag = 0xa101,
                                               .source_to = 0x7f0012345000u};
    struct sample sample = decode(V_READ_REQUEST, 0);
    const struct iwarp_segment *s = &sample.segment;
    uint8_t fpdu[64];
    size_t len;

    (void)state;
    assert_int_equal(s->opcode, IWARP_OP_READ_REQUEST);
    assert_true(!s->tagged && s->last);
    assert_int_equal(s->qn, 1);
    assert_int_equal(s->msn, 1);
    assert_int_equal(s->read.sink_stag, 0x2200);
    assert_true(s->read.sink_to == 0x7f00aa000000u);
    assert_int_equal(s->read.size, 64);
    assert_int_equal(s->read.source_stag, 0xa101);
    assert_true(s->read.source_to == 0x7f0012345000u);
    len = iwarp_rdmap_put_read_request(fpdu, 1, &request);
    assert_int_equal(len, IWARP_FPDU_READ_REQUEST_LEN);
    check_encoded(&sample, fpdu, len);

    sample = decode(V_READ_RESPONSE, 0);
    assert_int_equal(s->opcode, IWARP_OP_READ_RESPONSE);
    assert_true(s->tagged && s->last);
    assert_int_equal(s->stag, 0x2200);
    assert_true(s->to == 0x7f00aa000000u);
    assert_int_equal(s->payload_len, 8);
    assert_int_equal(s->payload[7], 7);
    len = iwarp_rdmap_put_read_response(fpdu, 0x2200, 0x7f00aa000000u, 8, true);
    memcpy(fpdu + len, s->payload, 8);
    check_encoded(&sample, fpdu, len + 8);
}

static void w79_sends_with_invalidate(void **state)
{
    struct sample sample = decode(V_SEND_SE_INVALIDATE, 0);
    const struct iwarp_segment *s = &sample.segment;
    uint8_t fpdu[64];
    size_t len;

    (void)state;
    assert_int_equal(s->opcode, IWARP_OP_SEND_SE_INVALIDATE);
    assert_true(iwarp_opcode_invalidates(s->opcode) && iwarp_opcode_solicits(s->opcode));
    assert_int_equal(s->inv_stag, 0xa101);
    assert_int_equal(s->msn, 2);
    assert_int_equal(s->payload_len, 0);
    len = iwarp_rdmap_put_send(fpdu, IWARP_OP_SEND_SE_INVALIDATE, 0xa101, 2, 0, 0, true);
    check_encoded(&sample, fpdu, len);

    sample = decode(V_SEND_INVALIDATE, 0);
    assert_int_equal(s->opcode, IWARP_OP_SEND_INVALIDATE);
    assert_true(iwarp_opcode_invalidates(s->opcode) && !iwarp_opcode_solicits(s->opcode));
    assert_int_equal(s->inv_stag, 0xa101);
    assert_int_equal(s->msn, 3);
    assert_int_equal(s->payload_len, 4);
    len = iwarp_rdmap_put_send(fpdu, IWARP_OP_SEND_INVALIDATE, 0xa101, 3, 0, 4, true);
    memcpy(fpdu + len, s->payload, 4);
    check_encoded(&sample, fpdu, len + 4);
}

static void w33_w34_ready_to_receive_messages(void **state)
{
    struct sample sample = decode(V_RTR_WRITE, 0);
    const struct iwarp_segment *s = &sample.segment;
    struct iwarp_fpdu fpdu;
    uint8_t octets[IWARP_FPDU_RTR_READ_LEN];
    size_t len;

    (void)state;
    assert_true(s->opcode == IWARP_OP_WRITE && s->last && s->payload_len == 0); /* W-34 */
    assert_int_equal(s->stag, 1);
    assert_int_equal(s->ulpdu_len, 14);
    assert_int_equal(iwarp_rdmap_put_rtr_write(octets, 1, true), IWARP_FPDU_RTR_WRITE_LEN);
    assert_memory_equal(octets, sample.octets, sample.len);
    free(sample.octets);

    sample = decode(V_RTR_READ, 0);
    assert_true(s->opcode == IWARP_OP_READ_REQUEST && s->msn == 1);
    assert_true(s->read.size == 0 && s->read.source_stag == 1 && s->read.sink_stag == 0);
    len = iwarp_rdmap_put_rtr_read(octets, 0, 1, true);
    assert_int_equal(len, IWARP_FPDU_RTR_READ_LEN);
    assert_memory_equal(octets, sample.octets, sample.len);
    free(sample.octets);

    len = iwarp_rdmap_put_rtr_read(octets, 0x1100, 0x1100, true); /* W-33: ours */
    assert_int_equal(iwarp_fpdu_parse(octets, len, true, &fpdu), IWARP_OK);
    assert_int_equal(iwarp_rdmap_decode(fpdu.ulpdu, fpdu.ulpdu_len, 0, &sample.segment), IWARP_OK);
    assert_true(s->msn == 1 && s->qn == 1 && s->read.size == 0 && s->read.sink_stag == 0x1100);
    assert_int_equal(iwarp_rdmap_put_rtr_read(octets, 1, 1, false), IWARP_FPDU_RTR_READ_LEN);
    assert_int_equal(iwarp_get_be32(octets + 48), 0);

    sample = decode(V_RTR_RESPONSE, 0);
    assert_true(s->opcode == IWARP_OP_READ_RESPONSE && s->payload_len == 0 && s->last);
    assert_true(s->stag == 0 && s->to == 0);
    len = iwarp_rdmap_put_read_response(octets, 0, 0, 0, true);
    check_encoded(&sample, octets, len);
}

static void w31_both_readings_of_option_b(void **state)
{
    struct sample sample = decode(V_RTR_SEND, 0);
    const struct iwarp_segment *s = &sample.segment;
    uint8_t fpdu[IWARP_FPDU_UNTAGGED_LEN + IWARP_FPDU_TRAILER_MAX];
    size_t len;

    (void)state;
    assert_true(s->opcode == IWARP_OP_SEND && s->msn == 1 && s->payload_len == 0 && s->last);
    assert_int_equal(s->ulpdu_len, 18); /* W-68 */
    len = iwarp_rdmap_put_send(fpdu, IWARP_OP_SEND, 0, 1, 0, 0, true);
    check_encoded(&sample, fpdu, len);

    sample = decode(V_RTR_EMPTY, IWARP_DECODE_EMPTY);
    assert_true(s->opcode == IWARP_OP_EMPTY && s->payload_len == 0 && s->last);
    assert_int_equal(iwarp_rdmap_decode(sample.octets + 2, 0, 0, &sample.segment),
                     IWARP_TERMINATE); /* M-25 */
    assert_int_equal(s->error, IWARP_ERR_DDP_LOCAL);
    iwarp_put_be16(fpdu, 0);
    check_encoded(&sample, fpdu, 2);
}

static void extensions_are_recognised(void **state)
{
    struct sample sample = decode(V_IMMEDIATE, IWARP_DECODE_EXTENSIONS);
    struct iwarp_atomic_request request;
    struct iwarp_atomic_response response;

    (void)state;
    assert_int_equal(sample.segment.opcode, IWARP_OP_IMMEDIATE);
    assert_int_equal(sample.segment.qn, 0);
    assert_true(iwarp_get_be64(sample.segment.payload) == 0x0102030405060708u);
    free(sample.octets);

    sample = decode(V_FETCH_ADD, IWARP_DECODE_EXTENSIONS);
    assert_int_equal(sample.segment.opcode, IWARP_OP_ATOMIC_REQUEST);
    assert_int_equal(sample.segment.msn, 1);
    iwarp_rdmap_get_atomic_request(&sample.segment, &request);
    assert_int_equal(request.operation, IWARP_ATOMIC_FETCH_ADD);
    assert_int_equal(request.id, 7);
    assert_int_equal(request.stag, 0xa101);
    assert_true(request.to == 0x7f0012345000u && request.data == 1 && request.mask == 0);
    assert_true(request.compare == 0 && request.compare_mask == UINT64_MAX);
    free(sample.octets);

    sample = decode(V_CMP_SWAP, IWARP_DECODE_EXTENSIONS);
    assert_int_equal(sample.segment.msn, 2);
    iwarp_rdmap_get_atomic_request(&sample.segment, &request);
    assert_int_equal(request.operation, IWARP_ATOMIC_CMP_SWAP);
    assert_int_equal(request.id, 8);
    assert_true(request.data == 5 && request.mask == UINT64_MAX);
    assert_true(request.compare == 4 && request.compare_mask == UINT64_MAX);
    free(sample.octets);

    sample = decode(V_ATOMIC_RESPONSE, IWARP_DECODE_EXTENSIONS);
    assert_int_equal(sample.segment.opcode, IWARP_OP_ATOMIC_RESPONSE);
    assert_int_equal(sample.segment.qn, 3);
    iwarp_rdmap_get_atomic_response(&sample.segment, &response);
    assert_int_equal(response.id, 7);
    assert_true(response.value == 41);
    free(sample.octets);
}

/* ---- what is not accepted ------------------------------------------------------------------ */

#define CLOSED 1u /* stands for IWARP_CLOSE in the table; no error has this value */
#define EXT    IWARP_DECODE_EXTENSIONS

/* A segment made of its header fields; the body is `body` octets of zeros. */
struct bad {
    const char *name;
    uint8_t ddp;  /* DDP control octet; T decides the form */
    uint8_t ulp;  /* RDMAP control octet */
    uint32_t qn;  /* STag when tagged */
    uint32_t msn; /* not used when tagged */
    uint32_t mo;
    uint32_t ulpdu_len;
    unsigned flags;
    iwarp_error error; /* 0: accepted */
};

static const struct bad bads[] = {
    {"M-26 tagged 13", 0xc1, 0x40, 1, 0, 0, 13, 0, IWARP_ERR_DDP_LOCAL},
    {"M-26 untagged 17", 0x41, 0x43, 0, 1, 0, 17, 0, IWARP_ERR_DDP_LOCAL},
    {"M-26 2", 0xc1, 0x40, 1, 0, 0, 2, 0, IWARP_ERR_DDP_LOCAL},
    {"M-25 1", 0xc1, 0x40, 1, 0, 0, 1, IWARP_DECODE_EMPTY, IWARP_ERR_DDP_LOCAL},
    {"M-25 0", 0xc1, 0x40, 1, 0, 0, 0, 0, IWARP_ERR_DDP_LOCAL},
    {"M-34 DV 0", 0xc0, 0x40, 1, 0, 0, 14, 0, IWARP_ERR_TAG_VERSION},
    {"M-34 DV 2", 0xc2, 0x40, 1, 0, 0, 14, 0, IWARP_ERR_TAG_VERSION},
    {"M-34 DV 3 before RV and opcode", 0xc3, 0x0f, 1, 0, 0, 14, 0, IWARP_ERR_TAG_VERSION},
    {"M-46 DV 0", 0x40, 0x43, 0, 1, 0, 18, 0, IWARP_ERR_UNTAG_VERSION},
    {"M-46 DV 2 before QN", 0x42, 0x43, 9, 1, 0, 18, 0, IWARP_ERR_UNTAG_VERSION},
    {"M-46 DV 3", 0x43, 0x43, 0, 1, 0, 18, 0, IWARP_ERR_UNTAG_VERSION},
    {"M-47 QN 4", 0x41, 0x43, 4, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-47 QN ffffffff", 0x41, 0x43, 0xffffffffu, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-47 QN 4 before RV", 0x41, 0x83, 4, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 Send on 1", 0x41, 0x43, 1, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 Send with SE on 2", 0x41, 0x45, 2, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 Send with Invalidate on 3", 0x41, 0x44, 3, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 Read Request on 0", 0x41, 0x41, 0, 1, 0, 46, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 queue before length", 0x41, 0x41, 0, 1, 0, 18, 0, IWARP_ERR_UNTAG_QN},
    {"M-48 Atomic Request on 0", 0x41, 0x4a, 0, 1, 0, 70, EXT, IWARP_ERR_UNTAG_QN},
    {"M-48 Atomic Response on 1", 0x41, 0x4b, 1, 1, 0, 30, EXT, IWARP_ERR_UNTAG_QN},
    {"M-59 RV 0", 0x41, 0x03, 0, 1, 0, 18, 0, IWARP_ERR_OP_VERSION},
    {"M-59 RV 2", 0x41, 0x83, 0, 1, 0, 18, 0, IWARP_ERR_OP_VERSION},
    {"M-59 RV 3 tagged", 0xc1, 0xc0, 1, 0, 0, 14, 0, IWARP_ERR_OP_VERSION},
    {"M-59 RV before opcode", 0xc1, 0x0f, 1, 0, 0, 14, 0, IWARP_ERR_OP_VERSION},
    {"M-59 RV before T bit", 0xc1, 0x03, 1, 0, 0, 14, 0, IWARP_ERR_OP_VERSION},
    {"M-59 Terminate of another version", 0x41, 0x87, 2, 1, 0, 22, 0, IWARP_ERR_OP_VERSION},
    {"M-60 opcode 12", 0x41, 0x4c, 0, 1, 0, 18, EXT, IWARP_ERR_OP_OPCODE},
    {"M-60 opcode 15", 0xc1, 0x4f, 1, 0, 0, 14, EXT, IWARP_ERR_OP_OPCODE},
    {"M-60 opcode before queue", 0x41, 0x4d, 3, 1, 0, 18, EXT, IWARP_ERR_OP_OPCODE},
    {"M-61 Immediate", 0x41, 0x48, 0, 1, 0, 26, 0, IWARP_ERR_OP_OPCODE},
    {"M-61 Immediate with SE", 0x41, 0x49, 0, 1, 0, 26, 0, IWARP_ERR_OP_OPCODE},
    {"M-61 Atomic Request", 0x41, 0x4a, 1, 1, 0, 70, 0, IWARP_ERR_OP_OPCODE},
    {"M-61 Atomic Response", 0x41, 0x4b, 3, 1, 0, 30, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Read Request", 0xc1, 0x41, 1, 0, 0, 46, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Send", 0xc1, 0x43, 1, 0, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Send with Invalidate", 0xc1, 0x44, 1, 0, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Send with SE", 0xc1, 0x45, 1, 0, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Send with both", 0xc1, 0x46, 1, 0, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Terminate", 0xc1, 0x47, 1, 0, 0, 22, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Immediate", 0xc1, 0x48, 1, 0, 0, 26, EXT, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Atomic Request", 0xc1, 0x4a, 1, 0, 0, 70, EXT, IWARP_ERR_OP_OPCODE},
    {"M-62 T=1 Atomic Response", 0xc1, 0x4b, 1, 0, 0, 30, EXT, IWARP_ERR_OP_OPCODE},
    {"M-62 T=0 Write", 0x41, 0x40, 0, 1, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T=0 Read Response", 0x41, 0x42, 0, 1, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-62 T before queue", 0x41, 0x40, 3, 1, 0, 18, 0, IWARP_ERR_OP_OPCODE},
    {"M-63 Read Request 18", 0x41, 0x41, 1, 1, 0, 18, 0, IWARP_ERR_DDP_LOCAL},
    {"M-63 Read Request 45", 0x41, 0x41, 1, 1, 0, 45, 0, IWARP_ERR_DDP_LOCAL},
    {"M-63 short before L=0", 0x01, 0x41, 1, 1, 0, 45, 0, IWARP_ERR_DDP_LOCAL},
    {"M-64 Read Request 47", 0x41, 0x41, 1, 1, 0, 47, 0, IWARP_ERR_UNTAG_LENGTH},
    {"M-64 Read Request 200", 0x41, 0x41, 1, 1, 0, 200, 0, IWARP_ERR_UNTAG_LENGTH},
    {"M-65 Read Request L=0", 0x01, 0x41, 1, 1, 0, 46, 0, IWARP_ERR_UNTAG_MO},
    {"M-65 Read Request MO 4", 0x41, 0x41, 1, 1, 4, 46, 0, IWARP_ERR_UNTAG_MO},
    {"M-65 offset before length", 0x41, 0x41, 1, 1, 4, 60, 0, IWARP_ERR_UNTAG_MO},
    {"M-83 Terminate 18", 0x41, 0x47, 2, 1, 0, 18, 0, CLOSED},
    {"M-83 Terminate 21", 0x41, 0x47, 2, 1, 0, 21, 0, CLOSED},
    {"M-85 Terminate MSN 2", 0x41, 0x47, 2, 2, 0, 22, 0, CLOSED},
    {"M-85 Terminate MSN 0", 0x41, 0x47, 2, 0, 0, 22, 0, CLOSED},
    {"M-85 Terminate on 0", 0x41, 0x47, 0, 1, 0, 22, 0, CLOSED},
    {"M-85 Terminate on 4", 0x41, 0x47, 4, 1, 0, 22, 0, CLOSED},
    {"M-85 Terminate L=0", 0x01, 0x47, 2, 1, 0, 22, 0, CLOSED},
    {"M-85 Terminate MO 1", 0x41, 0x47, 2, 1, 1, 22, 0, CLOSED},
    {"M-89 Immediate 7", 0x41, 0x48, 0, 1, 0, 25, EXT, IWARP_ERR_OP_OTHER},
    {"M-89 Immediate 9", 0x41, 0x49, 0, 1, 0, 27, EXT, IWARP_ERR_OP_OTHER},
    {"M-89 Immediate L=0", 0x01, 0x48, 0, 1, 0, 26, EXT, IWARP_ERR_OP_OTHER},
    {"M-91 Atomic Request 69", 0x41, 0x4a, 1, 1, 0, 69, EXT, IWARP_ERR_DDP_LOCAL},
    {"M-91 Atomic Request 71", 0x41, 0x4a, 1, 1, 0, 71, EXT, IWARP_ERR_UNTAG_LENGTH},
    {"M-91 Atomic Response 29", 0x41, 0x4b, 3, 1, 0, 29, EXT, IWARP_ERR_DDP_LOCAL},
    {"M-91 Atomic Response 31", 0x41, 0x4b, 3, 1, 0, 31, EXT, IWARP_ERR_UNTAG_LENGTH},
    {"W-65 reserved bits", 0x7d, 0x73, 0, 1, 0, 18, 0, IWARP_NO_ERROR},
    {"W-69 empty Write to ffffffff", 0xc1, 0x40, 0xffffffffu, 0, 0, 14, 0, IWARP_NO_ERROR},
    {"Send, any MSN", 0x01, 0x43, 0, 77, 5, 100, 0, IWARP_NO_ERROR},
    {"Read Request 46", 0x41, 0x41, 1, 9, 0, 46, 0, IWARP_NO_ERROR},
    {"Terminate 22", 0x41, 0x47, 2, 1, 0, 22, 0, IWARP_NO_ERROR},
    {"Atomic Request 70", 0x41, 0x4a, 1, 1, 0, 70, EXT, IWARP_NO_ERROR},
};

static void make_bad(const struct bad *bad, uint8_t *ulpdu)
{
    ulpdu[0] = bad->ddp;
    ulpdu[1] = bad->ulp;
    if ((bad->ddp & IWARP_DDP_T) != 0) {
        iwarp_put_be32(ulpdu + 2, bad->qn);
        return;
    }
    iwarp_put_be32(ulpdu + 6, bad->qn);
    iwarp_put_be32(ulpdu + 10, bad->msn);
    iwarp_put_be32(ulpdu + 14, bad->mo);
}

static void m_rows_without_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bads); i++) {
        const struct bad *bad = &bads[i];
        uint8_t whole[256] = {0};
        uint8_t *ulpdu;
        struct iwarp_segment segment;
        enum iwarp_verdict verdict;

        make_bad(bad, whole);
        ulpdu = exact_copy(whole, bad->ulpdu_len);
        verdict = iwarp_rdmap_decode(ulpdu, bad->ulpdu_len, bad->flags, &segment);
        if (bad->error == CLOSED) {
            check_case(verdict == IWARP_CLOSE, bad->name);
        } else if (bad->error == IWARP_NO_ERROR) {
            check_case(verdict == IWARP_OK, bad->name);
        } else {
            check_case(verdict == IWARP_TERMINATE, bad->name);
            check_case(segment.error == bad->error, bad->name);
            check_case(segment.ulpdu == ulpdu && segment.ulpdu_len == bad->ulpdu_len, bad->name);
        }
        free(ulpdu);
    }
}

static void m92_m93_atomic_operation_and_alignment(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_FETCH_ADD, &len);
    struct iwarp_segment segment;

    (void)state;
    for (unsigned operation = 0; operation < 16; operation++) {
        bool known = operation == 0 || operation == 2;

        octets[2 + 21] = (uint8_t)(0xf0u | operation); /* reserved bits set: ignored */
        assert_int_equal(iwarp_rdmap_decode(octets + 2, 70, EXT, &segment),
                         known ? IWARP_OK : IWARP_TERMINATE);
        assert_int_equal(segment.error, known ? IWARP_NO_ERROR : IWARP_ERR_OP_OPCODE);
    }
    octets[2 + 21] = 0;
    octets[2 + 37] = 4;
    assert_int_equal(iwarp_rdmap_decode(octets + 2, 70, EXT, &segment), IWARP_TERMINATE);
    assert_int_equal(segment.error, IWARP_ERR_OP_STREAM);
    free(octets);
}

/* Whatever the octets: no read outside, and payload always inside the ULPDU. */
static void any_octets_decode_safely(void **state)
{
    uint32_t seed = 99;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        uint32_t len = test_random(&seed) % 80;
        uint8_t octets[80];
        uint8_t *exact;
        struct iwarp_segment segment;

        for (uint32_t i = 0; i < len; i++) {
            octets[i] = (uint8_t)(test_random(&seed) >> 7);
        }
        if (round % 2 == 0 && len > 10) { /* closer to something valid */
            octets[0] = (uint8_t)((octets[0] & 0xfcu) | 1u);
            octets[1] = (uint8_t)((octets[1] & 0x3fu) | 0x40u);
            memset(octets + 6, 0, 3);
            octets[9] &= 3;
        }
        exact = exact_copy(octets, len);
        if (iwarp_rdmap_decode(exact, len, test_random(&seed) % 4, &segment) == IWARP_OK) {
            assert_true(segment.payload >= exact && segment.payload_len <= len);
            assert_ptr_equal(segment.payload + segment.payload_len, exact + len);
        }
        free(exact);
    }
}

static void opcodes_and_names(void **state)
{
    (void)state;
    assert_int_equal(iwarp_opcode_send(false, false), IWARP_OP_SEND);
    assert_int_equal(iwarp_opcode_send(false, true), IWARP_OP_SEND_INVALIDATE);
    assert_int_equal(iwarp_opcode_send(true, false), IWARP_OP_SEND_SE);
    assert_int_equal(iwarp_opcode_send(true, true), IWARP_OP_SEND_SE_INVALIDATE);
    for (unsigned opcode = 0; opcode < 20; opcode++) {
        assert_int_equal(iwarp_opcode_is_send(opcode), opcode >= 3 && opcode <= 6);
        assert_non_null(iwarp_opcode_name(opcode));
    }
    assert_string_equal(iwarp_opcode_name(IWARP_OP_WRITE), "Write");
    assert_string_equal(iwarp_opcode_name(12), "unassigned");
    assert_string_equal(iwarp_opcode_name(IWARP_OP_EMPTY), "empty FPDU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w77_w78_send),
        cmocka_unit_test(w77_write),
        cmocka_unit_test(w77_read_request_and_response),
        cmocka_unit_test(w79_sends_with_invalidate),
        cmocka_unit_test(w33_w34_ready_to_receive_messages),
        cmocka_unit_test(w31_both_readings_of_option_b),
        cmocka_unit_test(extensions_are_recognised),
        cmocka_unit_test(m_rows_without_state),
        cmocka_unit_test(m92_m93_atomic_operation_and_alignment),
        cmocka_unit_test(any_octets_decode_safely),
        cmocka_unit_test(opcodes_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
