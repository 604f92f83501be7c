/// Property lists, XML and binary, by libplist, which is loaded when the first one is read: few have any.
#ifndef CPLIST_H
#define CPLIST_H

#include <stddef.h>

/// Reads a property list and writes it as JSON text: strings, whole numbers, numbers, truth values, arrays, dictionaries.
///
/// Returns a text that `free` frees, of `*length` bytes; NULL when it cannot, and then `message` says why. Nothing bounds
/// the result but the list itself: for files that are trusted, and small.
char *cplist_to_json(const char *bytes, size_t length, size_t *result_length, char *message, size_t message_size);

#endif
