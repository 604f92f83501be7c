#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include "ctoml.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// toml++ 3.3 and 3.4 assert what a text can make untrue: "[a." followed by a line feed ended the process, and with NDEBUG it is
// undefined behaviour. Its assertions throw here instead; those about the beginning of a key do nothing, because the
// parser looks at it again right behind them and then says where the mistake is.
static void assertion_failed(const char *expression) {
    if (std::strstr(expression, "is_bare_key_character(*cp)")) return;
    throw std::logic_error("the parser gave up");
}
#if __has_include(<toml++/impl/preprocessor.hpp>)
#include <toml++/impl/preprocessor.hpp>
#else
#include <toml++/impl/preprocessor.h>
#endif
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(...) ((__VA_ARGS__) ? void() : assertion_failed(#__VA_ARGS__))
#define TOML_ASSERT_ASSUME(...) TOML_ASSERT(__VA_ARGS__)
#include <toml++/toml.h>

struct ctoml_document {
    toml::table root;
    bool failed = false;
    std::string error;
    uint32_t line = 0, column = 0;
    std::vector<ctoml_node> nodes;
};

// How deep a text may nest. toml++ bounds values in values (256), but not the parts of a dotted key, and both it and list()
// below go down by recursion: a key of 32,850 parts ended the process. Settings need 4 parts and 3 brackets.
constexpr size_t most_parts = 16, most_brackets = 16;

struct depth_mistake {
    const char *words = nullptr;
    uint32_t line = 1, column = 1;
    size_t line_start = 0;
};

// Skips a string that begins at `at` and returns where it ends. A string of one line ends with its line at the latest: the
// parser stops there, so what follows does not matter.
static size_t string_end(std::string_view text, size_t at) {
    const char quote = text[at];
    const bool escapes = quote == '"', lines = text.substr(at, 3) == std::string(3, quote);
    for (size_t next = at + (lines ? 3 : 1); next < text.size(); next++) {
        if (escapes && text[next] == '\\') next++;
        else if (lines && text.substr(next, 3) == std::string(3, quote)) {
            for (next += 3; next < text.size() && text[next] == quote;) next++;
            return next;
        } else if (!lines && text[next] == quote) return next + 1;
        else if (!lines && text[next] == '\n') return next;
    }
    return text.size();
}

// Looks at the nesting of a text before anything goes down into it.
static depth_mistake find_depth_mistake(std::string_view text) {
    depth_mistake found;
    size_t parts = 1, brackets = 0;
    for (size_t at = 0; at < text.size();) {
        size_t next = at + 1;
        switch (text[at]) {
        case '#': next = std::min(text.find('\n', at), text.size()); break;
        case '"':
        case '\'': next = string_end(text, at); break;
        case '.': parts++; break;
        case '[':
        case '{': brackets++; parts = 1; break;
        case ']':
        case '}': brackets -= brackets > 0; parts = 1; break;
        case '=':
        case ',':
        case '\n': parts = 1; break;
        default: break;
        }
        if (parts > most_parts) found.words = "a key has more than 16 parts";
        if (brackets > most_brackets) found.words = "values are nested more than 16 levels deep";
        if (found.words) return found;
        for (; at < next; at++) {
            if (text[at] == '\n') {
                found.line++;
                found.column = 1;
                found.line_start = at + 1;
            } else if ((text[at] & 0xC0) != 0x80) found.column++;
        }
    }
    return found;
}

// Lists a node and all below it; find_depth_mistake() bounds the recursion.
static void list(ctoml_document &document, const toml::node &node, int64_t parent, const toml::key *key) {
    ctoml_node entry{};
    entry.parent = parent;
    if (key) {
        entry.key = key->str().data();
        entry.key_length = key->str().size();
        entry.key_line = key->source().begin.line;
        entry.key_column = key->source().begin.column;
    }
    entry.line = node.source().begin.line;
    entry.column = node.source().begin.column;
    const auto index = static_cast<int64_t>(document.nodes.size());
    if (auto *table = node.as_table()) {
        entry.kind = CTOML_TABLE;
        document.nodes.push_back(entry);
        for (auto &&[name, member] : *table) list(document, member, index, &name);
        return;
    }
    if (auto *array = node.as_array()) {
        entry.kind = CTOML_ARRAY;
        document.nodes.push_back(entry);
        for (auto &&element : *array) list(document, element, index, nullptr);
        return;
    }
    if (auto *string = node.as_string()) {
        entry.kind = CTOML_STRING;
        entry.text = string->get().data();
        entry.text_length = string->get().size();
    } else if (auto *integer = node.as_integer()) {
        entry.kind = CTOML_INTEGER;
        entry.integer = integer->get();
    } else if (auto *number = node.as_floating_point()) {
        entry.kind = CTOML_FLOAT;
        entry.number = number->get();
    } else if (auto *boolean = node.as_boolean()) {
        entry.kind = CTOML_BOOLEAN;
        entry.boolean = boolean->get();
    } else {
        entry.kind = CTOML_DATE;
    }
    document.nodes.push_back(entry);
}

static void fail(ctoml_document &document, std::string_view error) {
    document.failed = true;
    document.error = std::string(error);
    document.nodes.clear();
}

ctoml_document *ctoml_parse(const char *text, size_t length) {
    auto *document = new ctoml_document;
    auto whole = std::string_view(text, length);
    const auto deep = find_depth_mistake(whole);
    if (deep.words) {
        fail(*document, deep.words);
        document->line = deep.line;
        document->column = deep.column;
        // A mistake before it may be all that makes it look so deep, as headings that nobody closes.
        whole = whole.substr(0, deep.line_start);
    }
    try {
        auto root = toml::parse(whole);
        if (deep.words) return document;
        document->root = std::move(root);
        list(*document, document->root, -1, nullptr);
    } catch (const toml::parse_error &error) {
        if (deep.words && error.source().begin.line >= deep.line) return document;
        fail(*document, error.description());
        document->line = error.source().begin.line;
        document->column = error.source().begin.column;
    } catch (const std::exception &error) {
        if (!deep.words) fail(*document, error.what());
    }
    return document;
}

void ctoml_free(ctoml_document *document) { delete document; }

const char *ctoml_error(const ctoml_document *document, uint32_t *line, uint32_t *column) {
    if (!document->failed) return nullptr;
    *line = document->line;
    *column = document->column;
    return document->error.c_str();
}

size_t ctoml_count(const ctoml_document *document) { return document->nodes.size(); }
const ctoml_node *ctoml_nodes(const ctoml_document *document) { return document->nodes.data(); }
