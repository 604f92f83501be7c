#include "CScan.h"

#if defined(__x86_64__)
#include <stddef.h>
#include <tmmintrin.h>

// What is wrong with a pair of neighbouring bytes, a bit each.
enum {
    TOO_SHORT = 1 << 0,       // a lead byte, and then no continuation
    TOO_LONG = 1 << 1,        // ASCII, and then a continuation
    OVERLONG_3 = 1 << 2,      // E0 80 … E0 9F
    TOO_LARGE = 1 << 3,       // F4 90 … and beyond
    SURROGATE = 1 << 4,       // ED A0 … ED BF
    OVERLONG_2 = 1 << 5,      // C0, C1
    OVERLONG_4 = 1 << 6,      // F0 80 … F0 8F
    TOO_LARGE_1000 = 1 << 6,  // F5 80 and beyond
    TWO_CONTS = 1 << 7,       // two continuations: right only inside a longer character
    ANY = TOO_SHORT | TOO_LONG | TWO_CONTS,
    LARGE = ANY | TOO_LARGE | TOO_LARGE_1000,
};

/// Which bytes of a block are not well-formed UTF-8 after the block before it: not zero where something is wrong.
///
/// Each of three tables says what a half of a byte may have to do with each fault; a fault is where all three agree.
/// Source: J. Keiser, D. Lemire, "Validating UTF-8 In Less Than One Instruction Per Byte", 2020.
static inline __attribute__((always_inline, target("ssse3"))) __m128i faults(__m128i text, __m128i before) {
    const __m128i first_high = _mm_setr_epi8(
        TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, (char)TWO_CONTS,
        (char)TWO_CONTS, (char)TWO_CONTS, (char)TWO_CONTS, TOO_SHORT | OVERLONG_2, TOO_SHORT,
        TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4);
    const __m128i first_low = _mm_setr_epi8(
        (char)(ANY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(ANY | OVERLONG_2), (char)ANY, (char)ANY,
        (char)(ANY | TOO_LARGE), (char)LARGE, (char)LARGE, (char)LARGE, (char)LARGE, (char)LARGE, (char)LARGE,
        (char)LARGE, (char)LARGE, (char)(LARGE | SURROGATE), (char)LARGE, (char)LARGE);
    const __m128i second_high = _mm_setr_epi8(
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
        (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4),
        (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE),
        (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE),
        (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE), TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    const __m128i half = _mm_set1_epi8(0x0F);
    __m128i one = _mm_alignr_epi8(text, before, 15);
    __m128i pairs = _mm_and_si128(
        _mm_and_si128(
            _mm_shuffle_epi8(first_high, _mm_and_si128(_mm_srli_epi16(one, 4), half)),
            _mm_shuffle_epi8(first_low, _mm_and_si128(one, half))),
        _mm_shuffle_epi8(second_high, _mm_and_si128(_mm_srli_epi16(text, 4), half)));
    // The third and fourth byte of a character: there two continuations are right, and anything else is wrong.
    __m128i third = _mm_subs_epu8(_mm_alignr_epi8(text, before, 14), _mm_set1_epi8(0xE0 - 0x80));
    __m128i fourth = _mm_subs_epu8(_mm_alignr_epi8(text, before, 13), _mm_set1_epi8((char)(0xF0 - 0x80)));
    __m128i deep = _mm_and_si128(_mm_or_si128(third, fourth), _mm_set1_epi8((char)0x80));
    return _mm_xor_si128(deep, pairs);
}

/// The value of four hexadecimal digits; a negative number if one of them is none.
static inline __attribute__((always_inline)) int32_t hex(const uint8_t *p) {
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t digit = p[i] - '0', letter = (p[i] | 0x20) - 'a';
        if (digit >= 10) {
            if (letter >= 6) return -1;
            digit = letter + 10;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/// How long the escape at `p` is, of which twelve bytes are readable; 0 if it is none.
static inline __attribute__((always_inline)) uint32_t escape(const uint8_t *p) {
    uint8_t c = p[1];
    if (c == 'u') {
        int32_t unit = hex(p + 2);
        if (unit < 0) return 0;
        if ((unit & 0xF800) != 0xD800) return 6;
        if (unit >= 0xDC00 || p[6] != '\\' || p[7] != 'u') return 0;
        int32_t low = hex(p + 8);
        return low >= 0 && (low & 0xFC00) == 0xDC00 ? 12 : 0;
    }
    // A bit for each character that may follow a backslash: `"` and `/`, then `\`, b, f, n, r and t.
    uint64_t allowed = c < 64 ? 0x0000800400000000 : 0x0014404410000000;
    return c < 128 && allowed >> (c & 63) & 1 ? 2 : 0;
}

static __attribute__((target("ssse3"))) const uint8_t *text_end(
    const uint8_t *p, const uint8_t *run_end, bool *is_escaped) {
    __m128i before = _mm_setzero_si128();
    // The bytes of the last block that may begin a character which ends in the next one.
    uint32_t open = 0;
    // How many bytes of the next block belong to an escape.
    uint32_t taken = 0;
    while (p <= run_end) {
        __m128i text = _mm_loadu_si128((const __m128i *)p);
        __m128i quote = _mm_cmpeq_epi8(text, _mm_set1_epi8('"'));
        __m128i slash = _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'));
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1F)), text);
        uint32_t stops = (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
        stops &= ~0u << taken;
        taken = 0;
        uint32_t wrong = 0, high = (uint32_t)_mm_movemask_epi8(text);
        if (high | open) {
            __m128i right = _mm_cmpeq_epi8(faults(text, before), _mm_setzero_si128());
            wrong = ~(uint32_t)_mm_movemask_epi8(right) & 0xFFFF;
        }
        while (stops) {
            uint32_t place = (uint32_t)__builtin_ctz(stops);
            uint8_t c = p[place];
            // A character that is cut off by the quote is found wrong at the quote.
            if (c == '"') return wrong & ((2u << place) - 1) ? NULL : p + place;
            if (c != '\\' || p + place > run_end) return NULL;
            uint32_t length = escape(p + place);
            if (!length) return NULL;
            *is_escaped = true;
            if (place + length > 16) {
                taken = place + length - 16;
                break;
            }
            stops &= (uint32_t)(~0ull << (place + length));
        }
        if (wrong) return NULL;
        open = high >> 13;
        before = text;
        p += 16;
    }
    return NULL;
}

const uint8_t *cscan_text(const uint8_t *p, const uint8_t *run_end, bool *is_escaped) {
    return __builtin_cpu_supports("ssse3") ? text_end(p, run_end, is_escaped) : NULL;
}

// The closing quote of a string whose text begins at `p`; null if the string has no end.
static inline __attribute__((always_inline)) const uint8_t *string_end(
    const uint8_t *p, const uint8_t *end, bool *is_escaped) {
    while (end - p >= 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)p);
        __m128i stop = _mm_or_si128(
            _mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
        uint32_t stops = (uint32_t)_mm_movemask_epi8(stop);
        if (!stops) {
            p += 16;
            continue;
        }
        p += __builtin_ctz(stops);
        if (*p == '"') return p;
        *is_escaped = true;
        p += 2;
    }
    for (; p < end; p++) {
        if (*p == '"') return p;
        if (*p == '\\') {
            *is_escaped = true;
            p++;
        }
    }
    return NULL;
}

// What follows a number or a literal.
static inline __attribute__((always_inline)) const uint8_t *scalar_end(const uint8_t *p, const uint8_t *end) {
    while (end - p >= 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)p);
        __m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(' ')), text);
        // Both closing brackets, which differ in one bit.
        __m128i close = _mm_cmpeq_epi8(_mm_or_si128(text, _mm_set1_epi8(0x20)), _mm_set1_epi8('}'));
        __m128i stop = _mm_or_si128(_mm_or_si128(blank, close), _mm_cmpeq_epi8(text, _mm_set1_epi8(',')));
        uint32_t stops = (uint32_t)_mm_movemask_epi8(stop);
        if (stops) return p + __builtin_ctz(stops);
        p += 16;
    }
    while (p < end && *p > ' ' && *p != ',' && *p != '}' && *p != ']') p++;
    return p;
}

// What follows an object or list; null if it has no end.
static const uint8_t *nested_end(const uint8_t *p, const uint8_t *end) {
    size_t depth = 0;
    for (; p < end; p++) {
        bool ignored = false;
        switch (*p) {
        case '{':
        case '[': depth++; break;
        case '}':
        case ']':
            if (--depth == 0) return p + 1;
            break;
        case '"':
            p = string_end(p + 1, end, &ignored);
            if (!p) return NULL;
            break;
        default: break;
        }
    }
    return NULL;
}

size_t cscan_members(
    const uint8_t *base, size_t *offset, size_t length, struct cscan_member *members, size_t room) {
    const uint8_t *end = base + length, *p = base + *offset;
    size_t count = 0;
    while (count < room) {
        const uint8_t *name = p;
        if (name < end && *name == ',') name++;
        if (name >= end || *name++ != '"') break;
        struct cscan_member found = {0};
        const uint8_t *quote = string_end(name, end, &found.is_name_escaped);
        if (!quote || end - quote < 3 || quote[1] != ':' || quote[2] <= ' ') break;
        const uint8_t *value = quote + 2, *value_end;
        if (*value == '"') {
            value_end = string_end(value + 1, end, &found.is_value_escaped);
            if (value_end) value_end++;
        } else if (*value == '{' || *value == '[') {
            value_end = nested_end(value, end);
        } else {
            value_end = scalar_end(value, end);
        }
        if (!value_end || value_end == value) break;
        found.name = (uint32_t)(name - base);
        found.name_length = (uint32_t)(quote - name);
        found.value = (uint32_t)(value - base);
        found.value_length = (uint32_t)(value_end - value);
        members[count++] = found;
        p = value_end;
    }
    *offset = (size_t)(p - base);
    return count;
}

// Four bytes of text and four backslashes, with a backslash in front of each byte that the row's number has a bit for.
static const uint8_t quad_order[16][8] = {
    {0, 1, 2, 3, 0, 0, 0, 0}, {4, 0, 1, 2, 3, 0, 0, 0}, {0, 4, 1, 2, 3, 0, 0, 0}, {4, 0, 4, 1, 2, 3, 0, 0},
    {0, 1, 4, 2, 3, 0, 0, 0}, {4, 0, 1, 4, 2, 3, 0, 0}, {0, 4, 1, 4, 2, 3, 0, 0}, {4, 0, 4, 1, 4, 2, 3, 0},
    {0, 1, 2, 4, 3, 0, 0, 0}, {4, 0, 1, 2, 4, 3, 0, 0}, {0, 4, 1, 2, 4, 3, 0, 0}, {4, 0, 4, 1, 2, 4, 3, 0},
    {0, 1, 4, 2, 4, 3, 0, 0}, {4, 0, 1, 4, 2, 4, 3, 0}, {0, 4, 1, 4, 2, 4, 3, 0}, {4, 0, 4, 1, 4, 2, 4, 3},
};
// How long each row is.
static const uint8_t quad_length[16] = {4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8};

static __attribute__((target("ssse3"))) size_t escape_blocks(
    const uint8_t *p, size_t length, uint8_t *target, size_t *written) {
    const __m128i slashes = _mm_set1_epi8('\\');
    uint8_t *out = target;
    size_t at = 0;
    for (; length - at >= 16; at += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)(p + at));
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1F)), text);
        if (_mm_movemask_epi8(control)) break;
        __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, slashes));
        uint32_t stops = (uint32_t)_mm_movemask_epi8(stop);
        if (!stops) {
            _mm_storeu_si128((__m128i *)out, text);
            out += 16;
            continue;
        }
        for (int quad = 0; quad < 4; quad++) {
            __m128i order = _mm_loadl_epi64((const __m128i *)quad_order[stops & 15]);
            _mm_storel_epi64((__m128i *)out, _mm_shuffle_epi8(_mm_unpacklo_epi32(text, slashes), order));
            out += quad_length[stops & 15];
            stops >>= 4;
            text = _mm_srli_si128(text, 4);
        }
    }
    *written = (size_t)(out - target);
    return at;
}

size_t cscan_escape(const uint8_t *p, size_t length, uint8_t *target, size_t *written) {
    *written = 0;
    return length >= 16 && __builtin_cpu_supports("ssse3") ? escape_blocks(p, length, target, written) : 0;
}

#else

size_t cscan_members(
    const uint8_t *base, size_t *offset, size_t length, struct cscan_member *members, size_t room) {
    (void)base, (void)offset, (void)length, (void)members, (void)room;
    return 0;
}

size_t cscan_escape(const uint8_t *p, size_t length, uint8_t *target, size_t *written) {
    (void)p, (void)length, (void)target;
    *written = 0;
    return 0;
}

const uint8_t *cscan_text(const uint8_t *p, const uint8_t *run_end, bool *is_escaped) {
    (void)p, (void)run_end, (void)is_escaped;
    return 0;
}

#endif
