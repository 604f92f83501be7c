#include "CKafka.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ckafka_library.h"

static struct {
    bool is_loaded;
#define POINTER(result, name, arguments) result(*name) arguments;
    CKAFKA_FUNCTIONS(POINTER)
#undef POINTER
} library;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static bool load(char *words, size_t size) {
    if (library.is_loaded) return true;
    void *object = dlopen("librdkafka.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *reason = dlerror();
        snprintf(words, size, "%s", reason ? reason : "dlopen failed");
        return false;
    }
#define FIND(result, name, arguments) \
    *(void **)&library.name = dlsym(object, "rd_kafka_" #name); \
    if (!library.name) { \
        snprintf(words, size, "it lacks rd_kafka_%s: it is too old", #name); \
        dlclose(object); \
        return false; \
    }
    CKAFKA_FUNCTIONS(FIND)
#undef FIND
    library.is_loaded = true;
    return true;
}

bool ckafka_load(char *words, size_t size) {
    pthread_mutex_lock(&loading);
    bool loaded = load(words, size);
    pthread_mutex_unlock(&loading);
    return loaded;
}

// MARK: Properties

ckafka_properties *ckafka_properties_new(void) { return (ckafka_properties *)library.conf_new(); }

bool ckafka_set(ckafka_properties *properties, const char *name, const char *value, char *words, size_t size) {
    return library.conf_set((conf *)properties, name, value, words, size) == CONF_OK;
}

void ckafka_properties_free(ckafka_properties *properties) { library.conf_destroy((conf *)properties); }

// MARK: A producer

struct ckafka {
    handle *handle;
    topic *topic;
    queue *queue;
    int descriptor;
    // Of the record that is produced next.
    headers *headers;
    // The event whose reports are being read, and whether what it says itself has been.
    event *event;
    bool is_told;
    // For the reason of a fatal error.
    char words[512];
};

// The library would write to standard error. What matters of it comes as errors of the producer and of records.
static void log_nothing(const handle *from, int level, const char *facility, const char *text) {
    (void)from, (void)level, (void)facility, (void)text;
}

static bool is_here(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    }
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

// On a thread of the library: a broker may tell of any address.
static int connect_here(int socket, const struct sockaddr *address, int length, const char *id, void *opaque) {
    (void)id, (void)opaque;
    if (!is_here(address)) return EACCES;
    // The library waits for a connection that has begun.
    return connect(socket, address, (socklen_t)length) < 0 && errno != EINPROGRESS ? errno : 0;
}

static void close_now(ckafka *producer) {
    if (producer->event) library.event_destroy(producer->event);
    if (producer->headers) library.headers_destroy(producer->headers);
    if (producer->topic) library.topic_destroy(producer->topic);
    if (producer->queue) library.queue_destroy(producer->queue);
    if (producer->handle) library.destroy(producer->handle);
    // The library's threads wrote to it until now.
    if (producer->descriptor >= 0) close(producer->descriptor);
    free(producer);
}

ckafka *ckafka_open(ckafka_properties *properties, const char *topic, bool stays_here, char *words, size_t size) {
    conf *settings = (conf *)properties;
    ckafka *producer = calloc(1, sizeof *producer);
    if (producer) producer->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!producer || producer->descriptor < 0) {
        snprintf(words, size, "there is no memory or no descriptor for it");
        library.conf_destroy(settings);
        free(producer);
        return NULL;
    }
    library.conf_set_events(settings, EVENT_REPORTS | EVENT_ERROR | EVENT_TOKEN_WANTED);
    library.conf_set_log_cb(settings, log_nothing);
    if (stays_here) library.conf_set_connect_cb(settings, connect_here);
    producer->handle = library.new(PRODUCER, settings, words, size);
    if (!producer->handle) {
        // It takes the properties only when it succeeds.
        library.conf_destroy(settings);
        close_now(producer);
        return NULL;
    }
    if (topic) producer->topic = library.topic_new(producer->handle, topic, NULL);
    if (topic && !producer->topic) {
        snprintf(words, size, "%s", library.err2str(library.last_error()));
        ckafka_close(producer);
        return NULL;
    }
    producer->queue = library.queue_get_main(producer->handle);
    static const uint64_t one = 1;
    library.queue_io_event_enable(producer->queue, producer->descriptor, &one, sizeof one);
    return producer;
}

bool ckafka_use_token(
    ckafka *producer, const char *token, int64_t expires, const char *principal, char *words, size_t size) {
    return library.oauthbearer_set_token(producer->handle, token, expires, principal, NULL, 0, words, size) == 0;
}

int ckafka_descriptor(const ckafka *producer) { return producer->descriptor; }

bool ckafka_header(
    ckafka *producer, const void *name, size_t name_length, const void *value, size_t length) {
    if (!producer->headers) producer->headers = library.headers_new(4);
    if (producer->headers &&
        library.header_add(producer->headers, name, (ssize_t)name_length, value, (ssize_t)length) == 0)
        return true;
    // The record is not produced: the next one must not have its headers.
    if (producer->headers) library.headers_destroy(producer->headers);
    producer->headers = NULL;
    return false;
}

int ckafka_produce(
    ckafka *producer, const char *topic, const void *key, size_t key_length, const void *value, size_t length,
    int64_t time, uintptr_t mark) {
    headers *headers = producer->headers;
    producer->headers = NULL;
    // An argument that is absent would end the list.
    if (!headers) headers = library.headers_new(1);
    int code = library.producev(
        producer->handle, topic ? V_TOPIC : V_RKT, topic ? (const void *)topic : producer->topic, V_MSGFLAGS, COPY,
        V_KEY, key, key_length, V_VALUE, value, length, V_HEADERS, headers, V_TIMESTAMP, time, V_OPAQUE, (void *)mark, V_END);
    // It takes the headers only when it succeeds.
    if (code && headers) library.headers_destroy(headers);
    return code;
}

void ckafka_clear(ckafka *producer) {
    uint64_t count;
    // Fails only when there is nothing to read.
    if (read(producer->descriptor, &count, sizeof count) < 0) return;
}

static void report_error(ckafka *producer, ckafka_report *report) {
    *report = (ckafka_report){
        .code = library.event_error(producer->event), .words = library.event_error_string(producer->event)};
    // A fatal error may come under its own code, not only as _FATAL.
    int fatal = library.fatal_error(producer->handle, producer->words, sizeof producer->words);
    if (!fatal) return;
    report->is_fatal = true;
    report->code = fatal;
    report->words = producer->words;
}

bool ckafka_next(ckafka *producer, ckafka_report *report) {
    for (;;) {
        if (!producer->event) {
            producer->event = library.queue_poll(producer->queue, 0);
            producer->is_told = false;
        }
        if (!producer->event) return false;
        int type = library.event_type(producer->event);
        if (type == EVENT_REPORTS) {
            const message *found = library.event_message_next(producer->event);
            if (found) {
                *report = (ckafka_report){.is_record = true, .mark = (uintptr_t)found->mark, .code = found->code};
                return true;
            }
        } else if (type == EVENT_ERROR && !producer->is_told) {
            report_error(producer, report);
            producer->is_told = true;
            return true;
        } else if (type == EVENT_TOKEN_WANTED && !producer->is_told) {
            *report = (ckafka_report){.is_token_wanted = true};
            producer->is_told = true;
            return true;
        }
        library.event_destroy(producer->event);
        producer->event = NULL;
    }
}

int ckafka_look(ckafka *producer, int milliseconds) {
    const metadata *found = NULL;
    int code = library.metadata(producer->handle, 0, producer->topic, &found, milliseconds);
    if (code) return code;
    code = producer->topic && found->topic_count > 0 ? found->topics[0].code : 0;
    library.metadata_destroy(found);
    return code;
}

static void *close_on_thread(void *argument) {
    close_now(argument);
    return NULL;
}

void ckafka_close(ckafka *producer) {
    // Signals are read from a descriptor, by another thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int result = pthread_create(&thread, NULL, close_on_thread, producer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0) {
        pthread_detach(thread);
    } else {
        close_now(producer);
    }
}
