#include "CPlist.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What plist/plist.h declares (libplist 2.0 to 2.7), so that building needs no package for it.
typedef void *node;
enum { BOOLEAN = 0, INTEGER = 1, REAL = 2, STRING = 3, ARRAY = 4, DICTIONARY = 5 };

static struct {
    // From 2.3 on the last says where the format goes; an older one does not look at it.
    void (*parse)(const char *, uint32_t, node *, int *);
    void (*free)(node);
    int (*type)(node);
    void (*get_bool)(node, uint8_t *);
    void (*get_integer)(node, uint64_t *);
    void (*get_real)(node, double *);
    void (*get_string)(node, char **);
    uint32_t (*count)(node);
    node (*item)(node, uint32_t);
    void (*new_iterator)(node, void **);
    void (*next)(node, void *, char **, node *);
} library;

typedef struct {
    char *bytes;
    size_t length, capacity;
    const char *problem;
} text;

static void add(text *out, const char *bytes, size_t length) {
    if (out->problem) return;
    if (out->capacity - out->length < length) {
        size_t wanted = (out->capacity + length) * 2;
        char *grown = realloc(out->bytes, wanted);
        if (!grown) {
            out->problem = "there is no memory for it";
            return;
        }
        out->bytes = grown;
        out->capacity = wanted;
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

static void add_string(text *out, const char *value) {
    add(out, "\"", 1);
    for (const unsigned char *byte = (const unsigned char *)(value ? value : ""); *byte; byte++) {
        char escaped[8];
        if (*byte == '"' || *byte == '\\') {
            escaped[0] = '\\';
            escaped[1] = (char)*byte;
            add(out, escaped, 2);
        } else if (*byte < 0x20) {
            add(out, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", *byte));
        } else {
            add(out, (const char *)byte, 1);
        }
    }
    add(out, "\"", 1);
}

static void add_node(text *out, node value, int depth) {
    if (depth > 32) out->problem = "it is nested too deeply";
    if (out->problem) return;
    char number[64];
    switch (library.type(value)) {
    case BOOLEAN: {
        uint8_t flag = 0;
        library.get_bool(value, &flag);
        add(out, flag ? "true" : "false", flag ? 4 : 5);
        return;
    }
    case INTEGER: {
        uint64_t found = 0;
        library.get_integer(value, &found);
        add(out, number, (size_t)snprintf(number, sizeof number, "%lld", (long long)found));
        return;
    }
    case REAL: {
        double found = 0;
        library.get_real(value, &found);
        if (!isfinite(found)) {
            out->problem = "it holds a number that JSON has not";
            return;
        }
        int length = snprintf(number, sizeof number, "%.17g", found);
        add(out, number, (size_t)length);
        if (!strpbrk(number, ".e")) add(out, ".0", 2);
        return;
    }
    case STRING: {
        char *found = NULL;
        library.get_string(value, &found);
        add_string(out, found);
        free(found);
        return;
    }
    case ARRAY: {
        uint32_t count = library.count(value);
        add(out, "[", 1);
        for (uint32_t place = 0; place < count; place++) {
            if (place > 0) add(out, ",", 1);
            add_node(out, library.item(value, place), depth + 1);
        }
        add(out, "]", 1);
        return;
    }
    case DICTIONARY: {
        void *iterator = NULL;
        library.new_iterator(value, &iterator);
        add(out, "{", 1);
        for (bool first = true; !out->problem; first = false) {
            char *key = NULL;
            node member = NULL;
            library.next(value, iterator, &key, &member);
            if (!member) {
                free(key);
                break;
            }
            if (!first) add(out, ",", 1);
            add_string(out, key);
            free(key);
            add(out, ":", 1);
            add_node(out, member, depth + 1);
        }
        free(iterator);
        add(out, "}", 1);
        return;
    }
    default: out->problem = "it holds a value that is no text, number, truth value, array or dictionary";
    }
}

static uint64_t number(const uint8_t *bytes, unsigned size) {
    uint64_t value = 0;
    for (unsigned place = 0; place < size; place++) value = value << 8 | bytes[place];
    return value;
}

// Whether a text of a binary list holds a zero, at which libplist aborts (UTF-16) or cuts (ASCII). What is not well-formed is
// left to the library, which refuses it.
static bool has_zero_in_text(const uint8_t *bytes, size_t length) {
    if (length < 40 || memcmp(bytes, "bplist0", 7) != 0) return memchr(bytes, 0, length) != NULL;
    const uint8_t *trailer = bytes + length - 32;
    unsigned offset_size = trailer[6];
    uint64_t count = number(trailer + 8, 8), table = number(trailer + 24, 8);
    if (offset_size < 1 || offset_size > 8 || table >= length || count > (length - table) / offset_size) return false;
    // Objects may share their bytes: what is looked at stays in proportion to the list.
    uint64_t budget = 4 * (uint64_t)length;
    for (uint64_t object = 0; object < count; object++) {
        uint64_t place = number(bytes + table + object * offset_size, offset_size);
        if (place >= table) continue;
        uint8_t kind = bytes[place] >> 4;
        uint64_t units = bytes[place] & 15;
        if (kind != 5 && kind != 6) continue;
        place++;
        if (units == 15) {
            if (place >= table || bytes[place] >> 4 != 1 || (bytes[place] & 15) > 3) continue;
            unsigned size = 1u << (bytes[place] & 15);
            if (table - place <= size) continue;
            units = number(bytes + place + 1, size);
            place += 1 + size;
        }
        unsigned width = kind == 6 ? 2 : 1;
        if (place > table || units > (table - place) / width) continue;
        if (units > budget) return true;
        budget -= units;
        for (uint64_t unit = 0; unit < units; unit++)
            if (number(bytes + place + unit * width, width) == 0) return true;
    }
    return false;
}

static bool load(void) {
    static bool is_loaded = false;
    if (is_loaded) return true;
    void *handle = dlopen("libplist-2.0.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!handle) handle = dlopen("libplist-2.0.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    struct { void **place; const char *name; } functions[] = {
        {(void **)&library.parse, "plist_from_memory"},       {(void **)&library.free, "plist_free"},
        {(void **)&library.type, "plist_get_node_type"},      {(void **)&library.get_bool, "plist_get_bool_val"},
        {(void **)&library.get_integer, "plist_get_uint_val"}, {(void **)&library.get_real, "plist_get_real_val"},
        {(void **)&library.get_string, "plist_get_string_val"}, {(void **)&library.count, "plist_array_get_size"},
        {(void **)&library.item, "plist_array_get_item"},     {(void **)&library.new_iterator, "plist_dict_new_iter"},
        {(void **)&library.next, "plist_dict_next_item"},
    };
    for (size_t place = 0; place < sizeof functions / sizeof functions[0]; place++)
        if (!(*functions[place].place = dlsym(handle, functions[place].name))) return false;
    is_loaded = true;
    return true;
}

char *cplist_to_json(const char *bytes, size_t length, size_t *result_length, char *message, size_t message_size) {
    if (!load()) {
        snprintf(message, message_size, "property lists need libplist: install the package libplist3 (Debian 12) or libplist-2.0-4, or use JSON");
        return NULL;
    }
    if (has_zero_in_text((const uint8_t *)bytes, length)) {
        snprintf(message, message_size, "it holds a text with a zero in it");
        return NULL;
    }
    node root = NULL;
    if (length <= UINT32_MAX) library.parse(bytes, (uint32_t)length, &root, NULL);
    if (!root) {
        snprintf(message, message_size, "it is no property list, neither XML nor binary");
        return NULL;
    }
    text out = {0};
    add_node(&out, root, 0);
    library.free(root);
    if (out.problem) {
        snprintf(message, message_size, "%s", out.problem);
        free(out.bytes);
        return NULL;
    }
    *result_length = out.length;
    return out.bytes;
}
