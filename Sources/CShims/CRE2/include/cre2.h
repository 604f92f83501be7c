// The few calls of RE2 (linear-time regular expressions, C++) that the agent makes.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A compiled expression. Matching changes nothing in it that can be seen: any thread may match at any time.
typedef struct cre2_expression cre2_expression;

// Compiles an expression (UTF-8, unanchored). NULL when it cannot: then `message` holds why, cut to its size and ended by
// a zero. `memory` bounds, in bytes, what the expression and its automata take, now and when it matches; one that does
// not fit is refused.
cre2_expression *cre2_compile(const char *text, size_t length, bool ignore_case, int64_t memory, char *message, size_t size);

// Whether the expression is found in the text, in time linear in its length.
bool cre2_finds(const cre2_expression *expression, const char *text, size_t length);

void cre2_free(cre2_expression *expression);

// Whether the part stands somewhere in the text, in time linear in both (memmem, which Swift does not see).
bool cre2_contains(const void *text, size_t length, const void *part, size_t part_length);

#ifdef __cplusplus
}
#endif
