#include "cmicrohttpd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// The library keeps the contexts that it is given, so each server needs one that lives as long as the process: servers
// are few and made once.
struct bridge {
    struct shim_mhd_settings settings;
};

static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *piece, size_t *size, void **state) {
    (void)version;
    const struct bridge *bridge = closure;
    int result = bridge->settings.request(bridge->settings.context, connection, path, method, piece, size, state);
    return result ? MHD_YES : MHD_NO;
}

static void on_completed(void *closure, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how) {
    const struct bridge *bridge = closure;
    if (*state == NULL || bridge->settings.completed == NULL) return;
    bridge->settings.completed(bridge->settings.context, connection, *state, (int)how);
    *state = NULL;
}

struct MHD_Daemon *shim_mhd_start(const struct shim_mhd_settings *settings) {
    struct bridge *bridge = malloc(sizeof *bridge);
    if (bridge == NULL) {
        close(settings->listener);
        return NULL;
    }
    bridge->settings = *settings;
    struct MHD_OptionItem options[12];
    int count = 0;
#define OPTION(name, number, pointer) options[count++] = (struct MHD_OptionItem){name, (intptr_t)(number), (void *)(pointer)}
    // When it cannot start, the library closes the socket in some cases and not in others: it gets a copy.
    int listener = fcntl(settings->listener, F_DUPFD_CLOEXEC, 0);
    close(settings->listener);
    if (listener < 0) {
        free(bridge);
        return NULL;
    }
    OPTION(MHD_OPTION_LISTEN_SOCKET, listener, NULL);
    OPTION(MHD_OPTION_NOTIFY_COMPLETED, on_completed, bridge);
    OPTION(MHD_OPTION_CONNECTION_TIMEOUT, settings->idle_seconds, NULL);
    OPTION(MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
    if (settings->connections != 0) OPTION(MHD_OPTION_CONNECTION_LIMIT, settings->connections, NULL);
    if (settings->connections_per_address != 0)
        OPTION(MHD_OPTION_PER_IP_CONNECTION_LIMIT, settings->connections_per_address, NULL);
    if (settings->memory != 0) OPTION(MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->memory, NULL);
    if (settings->threads > 1) OPTION(MHD_OPTION_THREAD_POOL_SIZE, settings->threads, NULL);
    unsigned int flags = MHD_USE_EPOLL;
    if (settings->flags & SHIM_MHD_THREAD) flags |= MHD_USE_INTERNAL_POLLING_THREAD;
    if (settings->flags & SHIM_MHD_SUSPEND) flags |= MHD_ALLOW_SUSPEND_RESUME;
    if (settings->flags & SHIM_MHD_TLS) {
        flags |= MHD_USE_TLS;
        OPTION(MHD_OPTION_HTTPS_MEM_CERT, 0, settings->certificate);
        OPTION(MHD_OPTION_HTTPS_MEM_KEY, 0, settings->key);
    }
    OPTION(MHD_OPTION_END, 0, NULL);
#undef OPTION
    struct MHD_Daemon *server = MHD_start_daemon(flags, 0, NULL, NULL, on_request, bridge, MHD_OPTION_ARRAY, options,
                                                 MHD_OPTION_END);
    if (server == NULL) free(bridge);
    return server;
}

int shim_mhd_epoll(struct MHD_Daemon *server) {
    const union MHD_DaemonInfo *information = MHD_get_daemon_info(server, MHD_DAEMON_INFO_EPOLL_FD);
    return information == NULL ? -1 : information->epoll_fd;
}

void shim_mhd_run(struct MHD_Daemon *server) {
    MHD_run(server);
}

long long shim_mhd_timeout(struct MHD_Daemon *server) {
    MHD_UNSIGNED_LONG_LONG milliseconds = 0;
    return MHD_get_timeout(server, &milliseconds) == MHD_YES ? (long long)milliseconds : -1;
}

void shim_mhd_resume(struct MHD_Connection *connection) {
    MHD_resume_connection(connection);
}

void shim_mhd_suspend(struct MHD_Connection *connection) {
    MHD_suspend_connection(connection);
}

void shim_mhd_stop(struct MHD_Daemon *server) {
    MHD_stop_daemon(server);
}

unsigned int shim_mhd_connections(struct MHD_Daemon *server) {
    const union MHD_DaemonInfo *information = MHD_get_daemon_info(server, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return information == NULL ? 0 : information->num_connections;
}

int shim_mhd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *information =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return information == NULL ? -1 : information->connect_fd;
}

void shim_mhd_set_idle(struct MHD_Connection *connection, unsigned int seconds) {
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

const char *shim_mhd_header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

const char *shim_mhd_argument(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

struct visitor {
    void *context;
    void (*each)(void *context, const char *name, const char *value);
};

static enum MHD_Result visit(void *closure, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)kind;
    const struct visitor *visitor = closure;
    visitor->each(visitor->context, name, value);
    return MHD_YES;
}

void shim_mhd_arguments(struct MHD_Connection *connection, void *context,
                        void (*each)(void *context, const char *name, const char *value)) {
    struct visitor visitor = {context, each};
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, visit, &visitor);
}

struct MHD_Response *shim_mhd_response(const void *bytes, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

int shim_mhd_add_header(struct MHD_Response *response, const char *name, const char *value) {
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

int shim_mhd_respond(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result == MHD_YES;
}
