// SPDX-License-Identifier: MIT
/*
 * What two ndkpings tell each other in the private data of their connection. rping sends none, so a
 * server that receives none speaks plain rping, and so does a client whose offer was not answered.
 *
 * The client offers a mode; a server that can do it answers with the same octets in its accept, and
 * rejects the connection when it cannot. All numbers are big-endian:
 *
 *   0  4  magic "NDKP"
 *   4  1  version, 1
 *   5  1  mode: 1 exact, 2 table
 *   6  2  length of this structure, 24 (a transport may deliver more octets than were sent)
 *   8  4  exact: octets of every read and write
 *  12  4  zero
 *  16  8  exact: iterations the client means to do, 0 for no limit
 */
#ifndef SOFTNDK_NDKPING_HELLO_H
#define SOFTNDK_NDKPING_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#define HELLO_OCTETS 24

enum hello_mode { HELLO_PLAIN = 0, HELLO_EXACT = 1, HELLO_TABLE = 2 };

struct hello {
    enum hello_mode mode;
    uint32_t size;
    uint64_t count;
};

void hello_write(const struct hello *hello, uint8_t octets[HELLO_OCTETS]);

/* False: ours, but of a version, mode or size that this program does not know. Data that is not
 * ours at all, or none, is HELLO_PLAIN. */
bool hello_read(const uint8_t *octets, uint32_t length, struct hello *out);

/* Big-endian numbers, also for the messages of rping.c and table.c. */
void put_be(uint8_t *out, unsigned octets, uint64_t value);
uint64_t get_be(const uint8_t *in, unsigned octets);

#endif
