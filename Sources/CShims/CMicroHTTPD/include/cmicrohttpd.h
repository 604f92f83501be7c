/// libmicrohttpd for Swift, which can neither call its variadic functions nor see its enumerations.
///
/// Everything here is plain numbers, pointers and functions; nothing is decided here.
#ifndef CMICROHTTPD_H
#define CMICROHTTPD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <microhttpd.h>

/// Flags of a server; they can be added.
///
/// Without SHIM_MHD_THREAD the server has no thread: watch `shim_mhd_epoll`, and call `shim_mhd_run` when it is readable
/// or `shim_mhd_timeout` has passed.
static const unsigned int SHIM_MHD_TLS = 1;
static const unsigned int SHIM_MHD_THREAD = 2;
static const unsigned int SHIM_MHD_SUSPEND = 4;

/// How a request ended, for `completed`.
static const int SHIM_MHD_COMPLETED = 0;

/// What a content reader returns instead of a count. 0 is not allowed without a thread: suspend the connection first.
static const ssize_t SHIM_MHD_END = -1;
static const ssize_t SHIM_MHD_BROKEN = -2;

struct shim_mhd_settings {
    /// SHIM_MHD_… added up.
    unsigned int flags;
    /// With SHIM_MHD_THREAD: how many threads share the connections; 0: one.
    unsigned int threads;
    /// A bound and listening socket; the server owns and closes it, also when it cannot be started.
    int listener;
    /// At most so many connections in all, and so many from one address (0: no bound of its own).
    unsigned int connections;
    unsigned int connections_per_address;
    /// Seconds without traffic after which a connection is closed; 0: never.
    unsigned int idle_seconds;
    /// Bytes that a connection's headers and buffers may take; 0: the library's default of 32 KiB.
    size_t memory;
    /// PEM texts, copied; for SHIM_MHD_TLS.
    const char *certificate;
    const char *key;
    /// Passed to each function below.
    void *context;
    /// Called once when the headers are there (*state is NULL then), again for each piece of the body (*size is set to 0
    /// when it is taken), and once more with *size 0 at its end. Returns 1, or 0 to cut the connection.
    int (*request)(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                   const char *piece, size_t *size, void **state);
    /// Called once for each request whose `state` was set, however it ended; may be NULL.
    void (*completed)(void *context, struct MHD_Connection *connection, void *state, int how);
};

/// Starts a server; NULL when that fails, with the reason in errno where there is one.
struct MHD_Daemon *shim_mhd_start(const struct shim_mhd_settings *settings);

/// The descriptor to watch for reading, for a server without a thread.
int shim_mhd_epoll(struct MHD_Daemon *server);
/// Does what there is to do, without waiting.
void shim_mhd_run(struct MHD_Daemon *server);
/// Milliseconds after which `shim_mhd_run` must be called although nothing is readable; -1: never.
long long shim_mhd_timeout(struct MHD_Daemon *server);
/// Goes on with a suspended connection. From any thread.
void shim_mhd_resume(struct MHD_Connection *connection);
/// Takes the connection out of the server's loop until `shim_mhd_resume`; inside of `request` only.
void shim_mhd_suspend(struct MHD_Connection *connection);
/// Ends all connections and threads; the settings' context is not used any more after it.
void shim_mhd_stop(struct MHD_Daemon *server);
/// How many connections are open.
unsigned int shim_mhd_connections(struct MHD_Daemon *server);

/// The connection's socket; -1 when it has none.
int shim_mhd_socket(struct MHD_Connection *connection);
/// Another idle time for this connection alone; 0: never.
void shim_mhd_set_idle(struct MHD_Connection *connection, unsigned int seconds);
/// A request's header, or an argument of its query, by name; NULL when there is none.
const char *shim_mhd_header(struct MHD_Connection *connection, const char *name);
const char *shim_mhd_argument(struct MHD_Connection *connection, const char *name);
/// Calls `each` for every argument of the query; the value is NULL where there is none.
void shim_mhd_arguments(struct MHD_Connection *connection, void *context,
                        void (*each)(void *context, const char *name, const char *value));

/// A response that holds a copy of these bytes.
struct MHD_Response *shim_mhd_response(const void *bytes, size_t size);
/// Adds a header; 0 when it may not be said.
int shim_mhd_add_header(struct MHD_Response *response, const char *name, const char *value);
/// Answers, and gives the response back; 0 when the connection must be cut.
int shim_mhd_respond(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response);

#endif
