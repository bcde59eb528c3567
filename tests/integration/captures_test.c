// SPDX-License-Identifier: MIT
/*
 * Streams that other implementations put on the wire (tests/captures: Linux siw talking to siw, and
 * siw answering malformed input), read by the decoders of the receive path, both directions. What
 * they find must be, line by line, what tshark found in the same packets, the CRC verdicts
 * included; the messages must follow each other as iwarp/track.h demands; and what is wrong must be
 * found to be wrong in the way that is named here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "iwarp/fpdu.h"
#include "iwarp/mpa.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"
#include "iwarp/track.h"

#define CONNECTIONS 10u
#define READS       64u
#define LINE        160

struct direction {
    const uint8_t *octets;
    uint32_t length;
    size_t at; /* of the first FPDU */
    struct iwarp_mpa_parser parser;
    struct iwarp_mpa_frame frame;
    struct iwarp_read_request reads[READS]; /* its Read Requests */
    unsigned read_count;
    uint32_t messages, responses, fpdus; /* whole Sends, whole Responses */
    iwarp_error error;                   /* the first, as the end that receives it sees it */
    iwarp_error terminated;              /* what its Terminate says */
};

struct capture {
    const char *name;
    uint8_t *octets;
    FILE *messages; /* what tshark says */
    unsigned count;
    struct direction both[CONNECTIONS][2]; /* initiator, responder */
};

static struct capture capture;

/* ---- files ---------------------------------------------------------------------------------- */

static FILE *open_file(const char *name, const char *suffix)
{
    const char *source = getenv("SOFTNDK_SOURCE_DIR");
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/captures/%s.%s", source ? source : ".", name, suffix);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read (SOFTNDK_SOURCE_DIR names the sources)", path);
    return file;
}

static void capture_open(const char *name)
{
    FILE *file = open_file(name, "streams");
    size_t length, at = 0;

    memset(&capture, 0, sizeof capture);
    capture.name = name;
    fseek(file, 0, SEEK_END);
    length = (size_t)ftell(file);
    rewind(file);
    capture.octets = malloc(length);
    assert_int_equal(fread(capture.octets, 1, length, file), length);
    fclose(file);
    for (unsigned i = 0; at < length; i++) {
        struct direction *d = &capture.both[i / 2][i % 2];

        assert_true(i / 2 < CONNECTIONS && at + 4 <= length);
        d->length = iwarp_get_be32(capture.octets + at);
        d->octets = capture.octets + at + 4;
        at += 4 + d->length;
        assert_true(at <= length);
        capture.count = i / 2 + 1;
    }
    capture.messages = open_file(name, "messages");
}

static void capture_close(void)
{
    char line[LINE];

    if (fgets(line, sizeof line, capture.messages))
        fail_msg("%s: tshark sees more: %s", capture.name, line);
    fclose(capture.messages);
    free(capture.octets);
}

/* The next line of tshark's must be this. */
static void expect_line(const char *ours)
{
    char line[LINE];

    if (!fgets(line, sizeof line, capture.messages))
        fail_msg("%s: tshark does not see: %s", capture.name, ours);
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, ours) != 0)
        fail_msg("%s: \"%s\", tshark: \"%s\"", capture.name, ours, line);
}

/* ---- startup -------------------------------------------------------------------------------- */

/* In one piece, with everything behind it, and octet by octet: the same frame. */
static void parse_startup(struct direction *d, bool reply, uint8_t asked)
{
    enum iwarp_mpa_kind kind = reply ? IWARP_MPA_REPLY : IWARP_MPA_REQUEST;
    struct iwarp_mpa_frame slow;
    enum iwarp_verdict verdict = IWARP_MORE;
    size_t consumed, at = 0;

    iwarp_mpa_parser_init(&d->parser, kind, asked);
    while (verdict == IWARP_MORE) {
        assert_true(at < d->length);
        verdict = iwarp_mpa_parse(&d->parser, d->octets + at, 1, &consumed, &slow);
        assert_int_equal(consumed, 1);
        at++;
    }
    assert_int_equal(verdict, IWARP_OK);
    iwarp_mpa_parser_init(&d->parser, kind, asked);
    assert_int_equal(iwarp_mpa_parse(&d->parser, d->octets, d->length, &consumed, &d->frame),
                     IWARP_OK);
    assert_int_equal(consumed, at);
    assert_true(slow.revision == d->frame.revision && slow.crc == d->frame.crc &&
                slow.private_len == d->frame.private_len && slow.ird == d->frame.ird &&
                slow.ord == d->frame.ord && slow.rtr == d->frame.rtr);
    d->at = at;
}

static void tell_startup(unsigned number, const struct direction *d, bool reply)
{
    char line[LINE];

    /* The flags as they stand there: what is reserved is ignored, and told by tshark. */
    snprintf(line, sizeof line, "%u %c %s revision %u flags %02x data %u", number,
             reply ? '<' : '>', reply ? "Reply" : "Request", d->frame.revision, d->octets[16],
             d->frame.private_len + (d->frame.enhanced ? 4u : 0u));
    expect_line(line);
    assert_true(d->frame.crc == ((d->octets[16] & 0x40) != 0) && !d->frame.markers &&
                !d->frame.rejected);
}

/* ---- FPDUs ---------------------------------------------------------------------------------- */

/* An FPDU is asked for with any number of octets at hand, and is there with the last one only. */
static enum iwarp_verdict parse_fpdu(const struct direction *d, size_t at, bool crc,
                                     struct iwarp_fpdu *fpdu)
{
    size_t left = d->length - at;
    enum iwarp_verdict verdict = iwarp_fpdu_parse(d->octets + at, left, crc, fpdu);
    struct iwarp_fpdu part;

    assert_int_not_equal(verdict, IWARP_MORE);
    for (size_t have = 0; have < fpdu->size; have++) {
        assert_int_equal(iwarp_fpdu_parse(d->octets + at, have, crc, &part), IWARP_MORE);
        assert_int_equal(part.size, have < 2 ? 0 : fpdu->size);
    }
    assert_int_equal(iwarp_fpdu_parse(d->octets + at, fpdu->size, crc, &part), verdict);
    return verdict;
}

/* From the octets, for a segment that is refused; else from what was decoded. */
static void tell_fpdu(unsigned number, char direction, const struct iwarp_fpdu *fpdu,
                      const struct iwarp_segment *segment, const char *crc)
{
    const uint8_t *u = fpdu->ulpdu;
    char line[LINE];

    if (segment && segment->tagged)
        snprintf(line, sizeof line, "%u %c %u %s opcode %u stag %08x to %016llx crc %s", number,
                 direction, fpdu->ulpdu_len, segment->last ? "last" : "more", segment->opcode,
                 segment->stag, (unsigned long long)segment->to, crc);
    else
        snprintf(
            line, sizeof line, "%u %c %u %s opcode %u qn %u msn %u mo %u crc %s", number, direction,
            fpdu->ulpdu_len, (segment ? segment->last : u[0] >> 6 & 1) ? "last" : "more",
            segment ? segment->opcode : u[1] & 15u, segment ? segment->qn : iwarp_get_be32(u + 6),
            segment ? segment->msn : iwarp_get_be32(u + 10),
            segment ? segment->mo : iwarp_get_be32(u + 14), crc);
    expect_line(line);
}

static iwarp_error terminate_of(const struct iwarp_segment *segment)
{
    struct iwarp_terminate terminate;

    memset(&terminate, 0, sizeof terminate);
    assert_int_equal(iwarp_terminate_decode(segment, false, &terminate), IWARP_OK);
    assert_true(terminate.known && terminate.reversed);
    return terminate.error;
}

/* What the order of messages says to this one. */
static iwarp_error track(struct direction *d, const struct direction *other,
                         struct iwarp_track_rx *rx, struct iwarp_track_read *read, bool *reading,
                         const struct iwarp_segment *segment)
{
    iwarp_error error = IWARP_NO_ERROR;
    uint32_t length;

    if (iwarp_opcode_is_send(segment->opcode)) {
        error = iwarp_track_send_check(rx, segment, true, 1u << 20);
        if (error == IWARP_NO_ERROR)
            d->messages += iwarp_track_send_advance(rx, segment, &length);
    } else if (segment->opcode == IWARP_OP_READ_REQUEST) {
        error = iwarp_track_request_check(rx, segment, 0, READS);
        if (error == IWARP_NO_ERROR) {
            iwarp_track_request_advance(rx);
            assert_true(d->read_count < READS);
            d->reads[d->read_count++] = segment->read;
        }
    } else if (segment->opcode == IWARP_OP_READ_RESPONSE) {
        if (!*reading)
            iwarp_track_read_open(read, &other->reads[d->responses]);
        *reading = true;
        error = iwarp_track_read_check(d->responses < other->read_count ? read : NULL, segment);
        if (error == IWARP_NO_ERROR && iwarp_track_read_advance(read, segment)) {
            *reading = false;
            d->responses++;
        }
    }
    return error;
}

/* All FPDUs of one direction; tell: compared with tshark's lines. */
static void play(unsigned number, bool responder, bool crc, bool tell)
{
    struct direction *d = &capture.both[number][responder];
    const struct direction *other = &capture.both[number][!responder];
    struct iwarp_track_rx rx;
    struct iwarp_track_read read;
    struct iwarp_segment segment;
    struct iwarp_fpdu fpdu;
    bool reading = false;

    iwarp_track_rx_init(&rx);
    d->read_count = d->messages = d->responses = d->fpdus = 0;
    d->error = d->terminated = IWARP_NO_ERROR;
    for (size_t at = d->at; at < d->length; at += fpdu.size, d->fpdus++) {
        enum iwarp_verdict verdict = parse_fpdu(d, at, crc, &fpdu);
        bool good = verdict == IWARP_OK;
        iwarp_error error = good ? IWARP_NO_ERROR : fpdu.error;

        if (good) {
            verdict = iwarp_rdmap_decode(fpdu.ulpdu, fpdu.ulpdu_len, 0, &segment);
            error = verdict == IWARP_OK ? track(d, other, &rx, &read, &reading, &segment)
                                        : segment.error;
            if (verdict == IWARP_OK && segment.opcode == IWARP_OP_TERMINATE)
                d->terminated = terminate_of(&segment);
        }
        if (tell)
            tell_fpdu(number, responder ? '<' : '>', &fpdu, verdict == IWARP_OK ? &segment : NULL,
                      !crc   ? "none"
                      : good ? "good"
                             : "bad");
        if (d->error == IWARP_NO_ERROR)
            d->error = error;
    }
}

static void replay(const char *name)
{
    capture_open(name);
    for (unsigned i = 0; i < capture.count; i++) {
        struct direction *request = &capture.both[i][0], *reply = &capture.both[i][1];
        bool crc;

        parse_startup(request, false, 0);
        parse_startup(reply, true, request->frame.revision);
        crc = request->frame.crc || reply->frame.crc;
        tell_startup(i, request, false);
        play(i, true, crc, false); /* for its Read Requests, which the other way answers */
        play(i, false, crc, true);
        tell_startup(i, reply, true);
        play(i, true, crc, true);
    }
    capture_close();
}

/* ---- captures ------------------------------------------------------------------------------- */

struct expected {
    const char *name;
    unsigned connections, sends, responses; /* whole ones, of both directions */
};

static void siw_and_siw(void **state)
{
    static const struct expected all[] = {
        {"siw-rping-v2-nocrc", 1, 12, 3},   {"siw-rping-v2-crc", 1, 12, 3},
        {"siw-rping-v2-crc-p2p", 1, 12, 3}, {"siw-rping-16k-crc", 1, 8, 2},
        {"siw-rping-16k-gso", 1, 8, 2},     {"siw-rping-v1-crc", 1, 1, 0},
        {"siw-sendrecv-v1-nocrc", 1, 2, 0}, {"siw-sendrecv-v1-crc", 1, 2, 0},
        {"siw-sendrecv-v2-crc", 1, 2, 0},   {"siw-passive-first-p2p", 1, 6, 0},
        {"siw-passive-first-rst", 1, 3, 0}, {"siw-send-bw-crc", 2, 30, 0},
        {"siw-write-bw-crc", 2, 32, 0},     {"siw-read-bw-crc", 2, 32, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        unsigned sends = 0, responses = 0;

        replay(all[i].name);
        assert_int_equal(capture.count, all[i].connections);
        for (unsigned n = 0; n < capture.count; n++)
            for (unsigned way = 0; way < 2; way++) {
                const struct direction *d = &capture.both[n][way];

                if (d->error != IWARP_NO_ERROR || d->terminated != IWARP_NO_ERROR)
                    fail_msg("%s: connection %u: %s", all[i].name, n, iwarp_error_text(d->error));
                sends += d->messages;
                responses += d->responses;
            }
        if (sends != all[i].sends || responses != all[i].responses)
            fail_msg("%s: %u Sends and %u Responses", all[i].name, sends, responses);
    }
}

/* What each connection sends is wrong in one way, and siw says so. The last two, and an unknown
 * STag, are well-formed: only memory or receives tell. */
static void siw_terminates(void **state)
{
    static const struct {
        iwarp_error ours, theirs;
    } all[CONNECTIONS] = {
        {IWARP_ERR_MPA_CRC, IWARP_ERR_MPA_CRC},
        {IWARP_NO_ERROR, IWARP_ERR_TAG_STAG},
        {IWARP_NO_ERROR, IWARP_ERR_PROT_STAG},
        {IWARP_ERR_OP_OPCODE, IWARP_ERR_OP_OPCODE},
        {IWARP_ERR_UNTAG_QN, IWARP_ERR_UNTAG_QN},
        {IWARP_ERR_UNTAG_VERSION, IWARP_ERR_UNTAG_VERSION},
        {IWARP_ERR_OP_VERSION, IWARP_ERR_OP_VERSION},
        {IWARP_ERR_UNTAG_MSN, IWARP_ERR_UNTAG_MSN},
        {IWARP_NO_ERROR, IWARP_ERR_UNTAG_NO_BUFFER},
        {IWARP_NO_ERROR, IWARP_ERR_UNTAG_NO_BUFFER},
    };

    (void)state;
    replay("siw-terminate-crc");
    assert_int_equal(capture.count, CONNECTIONS);
    for (unsigned n = 0; n < CONNECTIONS; n++) {
        const struct direction *sent = &capture.both[n][0], *answered = &capture.both[n][1];

        if (sent->error != all[n].ours || answered->terminated != all[n].theirs)
            fail_msg("connection %u: found %s, siw says %s", n, iwarp_error_text(sent->error),
                     iwarp_error_text(answered->terminated));
        assert_int_equal(answered->error, IWARP_NO_ERROR);
    }
    assert_int_equal(capture.both[9][0].messages, 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siw_and_siw),
        cmocka_unit_test(siw_terminates),
    };

    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
