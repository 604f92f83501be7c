#include "cre2.h"

#include <re2/re2.h>

#include <cstring>
#include <new>

struct cre2_expression {
    re2::RE2 expression;
    cre2_expression(re2::StringPiece text, const re2::RE2::Options &options) : expression(text, options) {}
};

cre2_expression *cre2_compile(
    const char *text, size_t length, bool ignore_case, int64_t memory, char *message, size_t size) {
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_case_sensitive(!ignore_case);
    options.set_max_mem(memory);
    options.set_never_capture(true);
    auto *made = new (std::nothrow) cre2_expression(re2::StringPiece(text, length), options);
    const char *why = made == nullptr ? "out of memory" : made->expression.ok() ? nullptr : made->expression.error().c_str();
    if (why == nullptr) return made;
    if (size > 0) {
        std::strncpy(message, why, size - 1);
        message[size - 1] = 0;
    }
    delete made;
    return nullptr;
}

bool cre2_finds(const cre2_expression *expression, const char *text, size_t length) {
    return re2::RE2::PartialMatch(re2::StringPiece(text, length), expression->expression);
}

void cre2_free(cre2_expression *expression) { delete expression; }

bool cre2_contains(const void *text, size_t length, const void *part, size_t part_length) {
    return memmem(text, length, part, part_length) != nullptr;
}
