/// The journal of systemd by libsystemd's reader, which is loaded when the first journal is opened: few configure one.
///
/// Building needs nothing of libsystemd. A journal is used by the thread that opened it: of a file that is truncated meanwhile, that thread
/// reads zeros. Functions return 0 or more, or a
/// negative errno, as the library's do.
#ifndef CJOURNAL_H
#define CJOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Loads the library, once for the process; if it is not loaded then, `words` says why.
bool cjournal_load(char *words, size_t words_size);

typedef struct cjournal cjournal;

/// Opens the journals in a directory, or with NULL those of this machine. Fields longer than `longest` bytes come cut.
int cjournal_open(cjournal **journal, const char *directory, size_t longest);

/// Opens files as one journal, all or none; NULL after the last.
int cjournal_open_files(cjournal **journal, const char **paths, size_t longest);

void cjournal_close(cjournal *journal);

/// Lets only entries pass that have one of the matches since the last `cjournal_or`, for each field, and all of the fields.
int cjournal_match(cjournal *journal, const char *match, size_t length);
int cjournal_or(cjournal *journal);

/// Lets all entries pass again. As after a match, the journal is nowhere until the next seek.
void cjournal_match_all(cjournal *journal);

int cjournal_seek_head(cjournal *journal);
int cjournal_seek_tail(cjournal *journal);
int cjournal_seek_cursor(cjournal *journal, const char *cursor);

/// Goes to the next entry; 0 at the end.
int cjournal_next(cjournal *journal);
int cjournal_previous(cjournal *journal);

/// The entry's cursor, to be freed by the caller.
int cjournal_cursor(cjournal *journal, char **cursor);

/// When journald took the entry, in microseconds since 1970.
int cjournal_time(cjournal *journal, uint64_t *microseconds);

/// The first and the last time of all entries; 0 when there are none.
int cjournal_times(cjournal *journal, uint64_t *from, uint64_t *to);

/// The entry's next field as `NAME=value`, valid until the next call; 0 after the last. What cannot be read is passed over.
int cjournal_field(cjournal *journal, const void **data, size_t *length);

/// Readable when something has changed; then `cjournal_process` is to be called.
int cjournal_descriptor(cjournal *journal);

/// What has changed: 0 nothing, 1 entries have come, 2 files have come or gone.
int cjournal_process(cjournal *journal);

/// Microseconds after which to call `cjournal_process` even so, on a file system without notice; negative: not by time.
int64_t cjournal_patience(cjournal *journal);

#endif
