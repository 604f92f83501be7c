/// TOML 1.0 by toml++ (header only), as a flat list of nodes in C: what Swift needs of a C++ parser, and no more.
#ifndef CTOML_H
#define CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The kinds of nodes; dates and times are told apart from the rest only to be refused by name.
enum {
    CTOML_TABLE = 0,
    CTOML_ARRAY = 1,
    CTOML_STRING = 2,
    CTOML_INTEGER = 3,
    CTOML_FLOAT = 4,
    CTOML_BOOLEAN = 5,
    CTOML_DATE = 6,
};

/// A node, valid as long as its document. Lines and columns count from 1, columns in code points; 0 is unknown.
typedef struct {
    uint8_t kind;
    /// The index of the table or array that holds it, always before it in the list; -1 for the root.
    int64_t parent;
    /// Its key in that table; NULL in an array.
    const char *key;
    size_t key_length;
    uint32_t key_line, key_column;
    uint32_t line, column;
    /// A string's bytes (UTF-8, not terminated).
    const char *text;
    size_t text_length;
    int64_t integer;
    double number;
    bool boolean;
} ctoml_node;

typedef struct ctoml_document ctoml_document;

/// Reads a document. Never NULL; to be freed with `ctoml_free`.
ctoml_document *ctoml_parse(const char *text, size_t length);
void ctoml_free(ctoml_document *document);

/// The first mistake's words, or NULL when the text is TOML. Line 0: the parser does not know where.
const char *ctoml_error(const ctoml_document *document, uint32_t *line, uint32_t *column);

/// The nodes, the root first; none when there is an error.
size_t ctoml_count(const ctoml_document *document);
const ctoml_node *ctoml_nodes(const ctoml_document *document);

#ifdef __cplusplus
}
#endif

#endif
