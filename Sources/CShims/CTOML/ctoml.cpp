#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include "ctoml.h"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// toml++ 3.3 asserts what a text can make untrue: "[a." followed by a line feed ended the process, and with NDEBUG it is
// undefined behaviour. Its assertions throw here instead; those about the beginning of a key do nothing, because the
// parser looks at it again right behind them and then says where the mistake is.
static void assertion_failed(const char *expression) {
    if (std::strstr(expression, "is_bare_key_character(*cp)")) return;
    throw std::logic_error("the parser gave up");
}
#include <toml++/impl/preprocessor.h>
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

// Lists a node and all below it. toml++ itself bounds the nesting (256 levels), and so the recursion.
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
    try {
        document->root = toml::parse(std::string_view(text, length));
        list(*document, document->root, -1, nullptr);
    } catch (const toml::parse_error &error) {
        fail(*document, error.description());
        document->line = error.source().begin.line;
        document->column = error.source().begin.column;
    } catch (const std::exception &error) {
        fail(*document, error.what());
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
