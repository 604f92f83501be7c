#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Parses each line of a block with simdjson's DOM; the block must have 64 readable bytes after it.
/// Returns how many lines are JSON objects with a string member `name`, and adds up the lengths of those names.
size_t simdjson_dom_lines(const uint8_t *block, size_t size, size_t *names);

/// Whether simdjson's DOM takes the text as one JSON document that is an object.
int simdjson_is_object(const uint8_t *text, size_t size);

#ifdef __cplusplus
}
#endif
