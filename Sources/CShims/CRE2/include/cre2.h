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

// Where the expression is found first, from `from` on; false where it is not.
bool cre2_find(
    const cre2_expression *expression, const char *text, size_t length, size_t from, size_t *start, size_t *end);

// The patterns that documents name.
typedef enum {
    cre2_email, cre2_ipv4, cre2_ipv6, cre2_jwt, cre2_credit_card, cre2_bearer_token
} cre2_ready;

// Whether a text may hold something of a pattern: false is certain, and the usual answer, in time linear in its length.
bool cre2_may_hold(cre2_ready pattern, const void *text, size_t length);

// The same for several patterns at once, the bits 1 << pattern, in one pass over the text where the processor has AVX2.
bool cre2_may_hold_any(uint32_t patterns, const void *text, size_t length);

void cre2_free(cre2_expression *expression);

// Which pairs of neighbouring bytes a text holds: a bit each, many pairs sharing one, capitals taken as small letters. A text
// that holds a part holds the part's pairs, so one look at two numbers tells of most texts that they do not. All bits
// for a text that is not worth it, or not ASCII: there a letter may fold to one of another length.
static inline uint64_t cre2_pairs(const void *text, size_t length) {
    const uint8_t *bytes = (const uint8_t *)text;
    if (length > 128) return ~(uint64_t)0;
    uint64_t pairs = 0;
    uint8_t all = length > 0 ? bytes[0] : 0;
    for (size_t place = 1; place < length; place++) {
        all |= bytes[place];
        uint32_t pair = (uint32_t)(bytes[place - 1] | 0x20) << 8 | (bytes[place] | 0x20);
        pairs |= (uint64_t)1 << (pair * 0x9E3779B1u >> 26);
    }
    return all & 0x80 ? ~(uint64_t)0 : pairs;
}

// The pairs that each text has in which the expression is found; 0 when nothing can be told. `memory` as above.
uint64_t cre2_required_pairs(const char *text, size_t length, bool ignore_case, int64_t memory);

// A compiled expression that says where its groups are. As above, any thread may match at any time.
typedef struct cre2_groups cre2_groups;

// Where a group is; a start of -1 for a group that took no part.
typedef struct {
    int64_t start;
    int64_t length;
} cre2_range;

// Compiles an expression over bytes (Latin-1: a byte that is not UTF-8 matches too), in which `.` matches line feeds.
// NULL and a message as with `cre2_compile`.
cre2_groups *cre2_compile_groups(const char *text, size_t length, int64_t memory, char *message, size_t size);
size_t cre2_group_count(const cre2_groups *groups);

// Writes the name of a group, from 1, without a zero; returns its length, 0 for a group without a name or one that is too long.
size_t cre2_group_name(const cre2_groups *groups, size_t group, char *name, size_t size);

// Whether the expression is found, and where its first `count` groups are.
bool cre2_groups_match(const cre2_groups *groups, const uint8_t *text, size_t length, cre2_range *places, size_t count);
void cre2_groups_free(cre2_groups *groups);

// Whether the part stands somewhere in the text, in time linear in both (memmem, which Swift does not see).
bool cre2_contains(const void *text, size_t length, const void *part, size_t part_length);

#ifdef __cplusplus
}
#endif
