// SPDX-License-Identifier: MIT
/* Looks whether a socket has octets or has ended, without taking anything from it. */
#include <errno.h>
#include <sys/socket.h>

#include "os/os.h"

int os_tcp_peek(int fd)
{
    for (;;) {
        char octet;
        ssize_t n = recv(fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT);

        if (n >= 0)
            return (int)n;
        if (errno == EINTR)
            continue;
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
}
