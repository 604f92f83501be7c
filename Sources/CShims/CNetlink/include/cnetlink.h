/// The kernel's network messages (rtnetlink), which Glibc's Swift module lacks.
#ifndef CNETLINK_H
#define CNETLINK_H

#include <stdint.h>

/// Opens a rtnetlink socket that does not block and is closed on exec; -1 and errno on failure.
///
/// With `listen`, it reports links, addresses, routes and rules that change.
int cnetlink_open(int listen);

/// Asks for the route to an address (4 or 16 bytes); 0, or -1 and errno.
int cnetlink_ask_route(int socket, uint32_t sequence, const uint8_t *address, int length);

/// What the kernel said about a route.
struct cnetlink_route {
    /// 0, or the error: ENETUNREACH, EHOSTUNREACH and their like.
    int error;
    /// The interface's number.
    uint32_t interface;
    /// RTN_UNICAST, RTN_LOCAL and so on.
    uint8_t type;
    /// The gateway's bytes; `gateway_length` is 0 when there is none.
    uint8_t gateway[16];
    int gateway_length;
};

/// Reads answers until the one with that sequence number; 1 when it was found, 0 when it was not there, -1 and errno.
int cnetlink_read_route(int socket, uint32_t sequence, struct cnetlink_route *route);

/// Throws away all messages that wait: what they say is asked for anew. The number of bytes, 0 for none.
long cnetlink_discard(int socket);

#endif
