/// A producer for Apache Kafka by librdkafka, which is loaded when the first one is wanted: few have a Kafka.
///
/// Building needs nothing of librdkafka: what its header declares and is used here is declared in ckafka_library.h.
#ifndef CKAFKA_H
#define CKAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Loads the library, once for the process.
///
/// Returns whether it is loaded; if not, `words` says why. Never unloaded: its threads may outlive a producer by moments.
bool ckafka_load(char *words, size_t words_size);

/// Properties of a producer to be. Only once the library is loaded.
typedef struct ckafka_properties ckafka_properties;

/// NULL for want of memory.
ckafka_properties *ckafka_properties_new(void);

/// Sets one; false when the library refuses it, and then `words` has its reason.
bool ckafka_set(ckafka_properties *properties, const char *name, const char *value, char *words, size_t words_size);

/// For properties that no producer was made of.
void ckafka_properties_free(ckafka_properties *properties);

/// A producer, with threads of its own. All calls but `ckafka_close` return without waiting.
typedef struct ckafka ckafka;

/// Makes a producer and takes the properties, also when it fails.
///
/// Records go to `topic`, unless they name theirs; NULL where all do. With `stays_here` its connections lead to this machine
/// only, whatever addresses brokers tell of.
/// NULL when the library refuses, and then `words` has its reason.
ckafka *ckafka_open(ckafka_properties *properties, const char *topic, bool stays_here, char *words, size_t words_size);

/// Gives it the access token for SASL's OAUTHBEARER, good until `expires` in milliseconds since 1970; false when the library refuses it,
/// and then `words` has its reason. To be called at once: connections wait for it.
bool ckafka_use_token(
    ckafka *producer, const char *token, int64_t expires, const char *principal, char *words, size_t words_size);

/// Readable once something has been reported, until `ckafka_clear`.
int ckafka_descriptor(const ckafka *producer);

/// To be called before the reports are read: what is reported from then on makes the descriptor readable again.
void ckafka_clear(ckafka *producer);

/// Adds a header to the record that is produced next; false for want of memory.
bool ckafka_header(
    ckafka *producer, const void *name, size_t name_length, const void *value, size_t length);

/// Hands over a record, copied; `topic` (for that of the producer) and `key` may be NULL. `time` is in milliseconds since 1970, 0 is
/// now. Returns the library's error code; 0: a report with `mark` will come.
int ckafka_produce(
    ckafka *producer, const char *topic, const void *key, size_t key_length, const void *value, size_t length,
    int64_t time, uintptr_t mark);

/// What has been reported.
typedef struct {
    /// Whether it is about a record, or else about the producer.
    bool is_record;
    /// Whether it is that the access token will soon be of no more use; all else is empty then.
    bool is_token_wanted;
    /// Whether the producer is of no more use.
    bool is_fatal;
    /// The record's.
    uintptr_t mark;
    /// The library's error code; 0 for a record that is stored.
    int code;
    /// The library's words for an error of the producer, until the next call; else NULL.
    const char *words;
} ckafka_report;

/// The next report; false when there is none now.
bool ckafka_next(ckafka *producer, ckafka_report *report);

/// Asks for the topic's metadata, and waits for so long at most. Returns an error code; 0 when the topic is there, or the producer
/// has none and a broker answers.
int ckafka_look(ckafka *producer, int milliseconds);

/// Ends a producer and everything it has not sent, on a thread of its own: names that do not resolve can hold it up.
void ckafka_close(ckafka *producer);

#endif
