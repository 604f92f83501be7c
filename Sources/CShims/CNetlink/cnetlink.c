#define _GNU_SOURCE
#include "cnetlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP(number) (1u << ((number) - 1))

int cnetlink_open(int listen) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (listen) {
        address.nl_groups = GROUP(RTNLGRP_LINK) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV4_ROUTE) |
                            GROUP(RTNLGRP_IPV4_RULE) | GROUP(RTNLGRP_IPV6_IFADDR) | GROUP(RTNLGRP_IPV6_ROUTE);
    }
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        int saved = errno;
        close(descriptor);
        errno = saved;
        return -1;
    }
    return descriptor;
}

int cnetlink_ask_route(int socket, uint32_t sequence, const uint8_t *address, int length) {
    if (length != 4 && length != 16) {
        errno = EINVAL;
        return -1;
    }
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        struct rtattr attribute;
        uint8_t address[16];
    } request;
    memset(&request, 0, sizeof request);
    request.attribute.rta_type = RTA_DST;
    request.attribute.rta_len = (unsigned short)RTA_LENGTH(length);
    memcpy(request.address, address, (size_t)length);
    request.route.rtm_family = length == 4 ? AF_INET : AF_INET6;
    request.route.rtm_dst_len = (unsigned char)(length * 8);
    request.header.nlmsg_type = RTM_GETROUTE;
    request.header.nlmsg_flags = NLM_F_REQUEST;
    request.header.nlmsg_seq = sequence;
    request.header.nlmsg_len =
        (uint32_t)(NLMSG_LENGTH(sizeof request.route) + RTA_LENGTH(length));
    return send(socket, &request, request.header.nlmsg_len, 0) < 0 ? -1 : 0;
}

static void read_attributes(const struct nlmsghdr *header, struct cnetlink_route *route) {
    const struct rtmsg *message = NLMSG_DATA(header);
    route->type = message->rtm_type;
    int left = (int)RTM_PAYLOAD(header);
    for (const struct rtattr *next = RTM_RTA(message); RTA_OK(next, left); next = RTA_NEXT(next, left)) {
        int length = (int)RTA_PAYLOAD(next);
        if (next->rta_type == RTA_OIF && length == 4) {
            memcpy(&route->interface, RTA_DATA(next), 4);
        } else if (next->rta_type == RTA_GATEWAY && (length == 4 || length == 16)) {
            memcpy(route->gateway, RTA_DATA(next), (size_t)length);
            route->gateway_length = length;
        }
    }
}

int cnetlink_read_route(int socket, uint32_t sequence, struct cnetlink_route *route) {
    // Aligned as the messages are; an answer about one route is far smaller.
    union {
        struct nlmsghdr header;
        uint8_t bytes[8192];
    } buffer;
    for (;;) {
        long received = recv(socket, &buffer, sizeof buffer, 0);
        if (received < 0) {
            if (errno == EINTR) continue;
            return errno == EAGAIN ? 0 : -1;
        }
        // Signed: the last message's length is rounded up and may then be more than what is left.
        int left = (int)received;
        for (struct nlmsghdr *header = &buffer.header; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
            if (header->nlmsg_seq != sequence) continue;
            memset(route, 0, sizeof *route);
            if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
                const struct nlmsgerr *error = NLMSG_DATA(header);
                route->error = -error->error;
                return 1;
            }
            if (header->nlmsg_type == RTM_NEWROUTE && header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct rtmsg))) {
                read_attributes(header, route);
                return 1;
            }
        }
    }
}

long cnetlink_discard(int socket) {
    uint8_t buffer[8192];
    long total = 0;
    for (;;) {
        long received = recv(socket, buffer, sizeof buffer, 0);
        if (received > 0) {
            total += received;
        } else if (received == 0) {
            return total;
        } else if (errno == ENOBUFS) {
            // The kernel had more to say than the socket could hold: something changed, that is all we want to know.
            total += 1;
        } else if (errno != EINTR) {
            return total;
        }
    }
}
