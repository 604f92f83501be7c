#include "CSimdjson.h"

#include <cstring>
#include <simdjson.h>

size_t simdjson_dom_lines(const uint8_t *block, size_t size, size_t *names) {
    simdjson::dom::parser parser;
    size_t objects = 0;
    const uint8_t *line = block;
    const uint8_t *end = block + size;
    while (line < end) {
        const uint8_t *stop = static_cast<const uint8_t *>(memchr(line, '\n', end - line));
        if (!stop) stop = end;
        simdjson::dom::element element;
        std::string_view name;
        // The padding that simdjson asks for is there: the rest of the block, and 64 bytes after it.
        if (!parser.parse(line, stop - line, false).get(element) && !element["name"].get(name)) {
            objects++;
            *names += name.size();
        }
        line = stop + 1;
    }
    return objects;
}

int simdjson_is_object(const uint8_t *text, size_t size) {
    static thread_local simdjson::dom::parser parser;
    simdjson::dom::element element;
    if (parser.parse(text, size, true).get(element)) return 0;
    return element.is_object();
}
