#pragma once

// A MaxMind database through libmaxminddb, which is loaded when it is first needed: the agent runs without it.

#include <stddef.h>

typedef struct cmaxmind cmaxmind;

/// Opens a database. Returns NULL, with a message of at most `size` bytes, when the library or the file cannot be used.
cmaxmind *cmaxmind_open(const char *path, char *message, size_t size);

/// Closes a database; NULL is allowed.
void cmaxmind_close(cmaxmind *database);

/// Looks the country of an address up (its text, either version): two letters into `code`. Returns 1 when it was found,
/// else 0.
int cmaxmind_country(cmaxmind *database, const char *address, char code[2]);
