// SPDX-License-Identifier: MIT
/*
 * What a stream remembers: segments with any fields, against receives and Reads of any size. No
 * segment that passes lies outside its receive or sink, and counters never go backwards.
 */
#include "fuzz.h"

#include <string.h>

#include "iwarp/rdmap.h"
#include "iwarp/track.h"

/* Small differences around what is expected, or anything. */
static uint32_t near(struct input *in, uint32_t expected)
{
    unsigned how = take(in, 1);

    return how < 0xc0 ? expected + (how & 0x80 ? how & 7 : 0) : take(in, 4);
}

static void send_segment(struct input *in, struct iwarp_track_rx *rx, uint32_t receive)
{
    struct iwarp_segment s = {.opcode = (uint8_t)(IWARP_OP_SEND + take(in, 1) % 4)};
    struct iwarp_track_rx before = *rx;
    uint32_t whole = 0;
    iwarp_error error;
    bool last;

    s.last = take(in, 1) & 1;
    s.msn = near(in, rx->msn[0]);
    s.mo = near(in, rx->mo);
    s.inv_stag = near(in, rx->inv_stag);
    s.payload_len = take(in, 2);
    error = iwarp_track_send_check(rx, &s, take(in, 1) & 1, receive);
    need(memcmp(&before, rx, sizeof before) == 0);
    if (error != IWARP_NO_ERROR) {
        need(iwarp_track_send_check(rx, &s, false, 0) != IWARP_NO_ERROR);
        return;
    }
    need(s.mo == before.mo && (uint64_t)s.mo + s.payload_len <= receive);
    need(s.msn == before.msn[0]);
    last = iwarp_track_send_advance(rx, &s, &whole);
    need(last == s.last);
    need(!last || whole == before.mo + s.payload_len);
    need(rx->msn[0] == before.msn[0] + last);
    need(rx->mo == (last ? 0 : before.mo + s.payload_len));
}

static void response_segment(struct input *in, struct iwarp_track_read *read, bool open)
{
    struct iwarp_segment s = {.opcode = IWARP_OP_READ_RESPONSE, .tagged = true};
    struct iwarp_track_read before = *read;
    unsigned how = take(in, 1);

    s.last = how & 1;
    s.stag = near(in, read->stag);
    s.to = how & 2 ? take64(in) : read->to + (how & 4 ? how : 0);
    s.payload_len = how & 8 ? read->remaining & 0xffff : take(in, 2);
    if (iwarp_track_read_check(open ? read : NULL, &s) != IWARP_NO_ERROR)
        return;
    need(open && s.payload_len <= before.remaining);
    need(s.payload_len == 0 || (s.stag == before.stag && s.to == before.to));
    if (iwarp_track_read_advance(read, &s))
        need(s.last && read->remaining == 0);
    need(read->remaining == before.remaining - s.payload_len);
}

static void request_segment(struct input *in, struct iwarp_track_rx *rx)
{
    struct iwarp_segment s = {.opcode = IWARP_OP_READ_REQUEST, .qn = 1};
    uint32_t open = take(in, 1), slots = take(in, 1), expected = rx->msn[1];

    s.msn = near(in, expected);
    if (iwarp_track_request_check(rx, &s, open, slots) != IWARP_NO_ERROR)
        return;
    need(s.msn == expected && open < slots);
    iwarp_track_request_advance(rx);
    need(rx->msn[1] == expected + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct iwarp_track_rx rx;
    struct iwarp_track_read read;
    struct iwarp_read_request request = {.sink_stag = 0x700, .sink_to = UINT64_MAX - 1000};
    uint32_t receive = take(&in, 4);

    iwarp_track_rx_init(&rx);
    request.size = take(&in, 3);
    iwarp_track_read_open(&read, &request);
    while (in.left) {
        unsigned what = take(&in, 1);

        if (what % 4 == 0)
            request_segment(&in, &rx);
        else if (what % 4 == 1)
            response_segment(&in, &read, what & 0xf0);
        else
            send_segment(&in, &rx, receive);
    }
    return 0;
}
