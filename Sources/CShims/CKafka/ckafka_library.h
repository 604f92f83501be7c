// What librdkafka/rdkafka.h declares of what is used here (1.6 to 2.x have it alike), so that building needs no package for it.
#ifndef CKAFKA_LIBRARY_H
#define CKAFKA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

// Handles, whose insides are the library's.
typedef struct handle handle;
typedef struct conf conf;
typedef struct topic topic;
typedef struct queue queue;
typedef struct event event;
typedef struct headers headers;

enum { PRODUCER = 0 };
enum { CONF_OK = 0 };
enum { EVENT_REPORTS = 0x1, EVENT_ERROR = 0x8, EVENT_TOKEN_WANTED = 0x100 };
enum { COPY = 0x2 };
// How the arguments of producev are told apart.
enum { V_END = 0, V_TOPIC = 1, V_RKT = 2, V_VALUE = 4, V_KEY = 5, V_OPAQUE = 6, V_MSGFLAGS = 7, V_TIMESTAMP = 8, V_HEADERS = 10 };

typedef struct {
    int code;
    topic *topic;
    int32_t partition;
    void *value;
    size_t length;
    void *key;
    size_t key_length;
    int64_t offset;
    void *mark;
} message;

typedef struct {
    char *name;
    int partition_count;
    void *partitions;
    int code;
} topic_metadata;

typedef struct {
    int broker_count;
    void *brokers;
    int topic_count;
    topic_metadata *topics;
    int32_t origin;
    char *origin_name;
} metadata;

// One line for each function that is used: what it returns, its name, what it takes.
#define CKAFKA_FUNCTIONS(F) \
    F(conf *, conf_new, (void)) \
    F(void, conf_destroy, (conf *)) \
    F(int, conf_set, (conf *, const char *, const char *, char *, size_t)) \
    F(void, conf_set_events, (conf *, int)) \
    F(void, conf_set_log_cb, (conf *, void (*)(const handle *, int, const char *, const char *))) \
    F(void, conf_set_connect_cb, (conf *, int (*)(int, const struct sockaddr *, int, const char *, void *))) \
    F(handle *, new, (int, conf *, char *, size_t)) \
    F(void, destroy, (handle *)) \
    F(int, oauthbearer_set_token, \
      (handle *, const char *, int64_t, const char *, const char **, size_t, char *, size_t)) \
    F(topic *, topic_new, (handle *, const char *, void *)) \
    F(void, topic_destroy, (topic *)) \
    F(int, last_error, (void)) \
    F(int, fatal_error, (handle *, char *, size_t)) \
    F(const char *, err2str, (int)) \
    F(queue *, queue_get_main, (handle *)) \
    F(void, queue_destroy, (queue *)) \
    F(void, queue_io_event_enable, (queue *, int, const void *, size_t)) \
    F(event *, queue_poll, (queue *, int)) \
    F(int, event_type, (const event *)) \
    F(const message *, event_message_next, (event *)) \
    F(int, event_error, (event *)) \
    F(const char *, event_error_string, (event *)) \
    F(void, event_destroy, (event *)) \
    F(headers *, headers_new, (size_t)) \
    F(int, header_add, (headers *, const char *, ssize_t, const void *, ssize_t)) \
    F(void, headers_destroy, (headers *)) \
    F(int, producev, (handle *, ...)) \
    F(int, metadata, (handle *, int, topic *, const metadata **, int)) \
    F(void, metadata_destroy, (const metadata *))

#endif
