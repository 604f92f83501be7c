#pragma once

// What Swift cannot say: sixteen bytes compared at once.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/// How many bytes `cscan_plain` looks at.
#define CSCAN_WIDTH 16

/// The closing quote of a string from `p` on, which stands at the beginning of a character, where nothing is wrong with the
/// rest of it; sets `is_escaped` if there is an escape. Null says nothing: something is wrong, or the string ends among
/// the last bytes of the block, or the processor cannot. Sixteen bytes must be readable at `run_end`, nothing beyond.
///
/// Escapes and characters beyond ASCII are checked together, sixteen bytes at a time.
const uint8_t *cscan_text(const uint8_t *p, const uint8_t *run_end, bool *is_escaped);

/// Where a member of an object stands, in bytes from the beginning of the text.
struct cscan_member {
    uint32_t name, name_length;
    /// The value with its quotes or brackets.
    uint32_t value, value_length;
    bool is_name_escaped, is_value_escaped;
};

/// Finds at most `room` members of an object in valid JSON text of `length` bytes, at most 4 GiB, from `offset` on, which is
/// behind the opening bracket or a value. Returns how many, and moves `offset` behind the last one.
///
/// It stops at what it does not handle: blanks around a name, and text that is cut off. The caller walks on from there.
size_t cscan_members(
    const uint8_t *base, size_t *offset, size_t length, struct cscan_member *members, size_t room);

/// Writes text as it stands between the quotes of a JSON string, sixteen bytes at a time, with a backslash in front of each
/// quote and backslash, and stops where a control character or fewer than sixteen bytes follow. Returns how many bytes of the
/// text were written; `written` is how many bytes they became. Returns 0 where the processor cannot.
///
/// The target needs room for two bytes for each one of the text, and sixteen more.
size_t cscan_escape(const uint8_t *p, size_t length, uint8_t *target, size_t *written);

/// A bit for each of the sixteen bytes at `p` that is a quote, a backslash, a control character or not ASCII. All sixteen
/// must be readable.
static inline __attribute__((always_inline)) uint32_t cscan_stops(const uint8_t *p) {
#if defined(__SSE2__)
    __m128i text = _mm_loadu_si128((const __m128i *)p);
    __m128i quote = _mm_cmpeq_epi8(text, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(text, _mm_set1_epi8('\\'));
    // As signed numbers, bytes beyond ASCII are negative: less than a blank, like control characters.
    __m128i other = _mm_cmplt_epi8(text, _mm_set1_epi8(' '));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), other));
#elif defined(__ARM_NEON)
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t text = vld1q_u8(p);
    uint8x16_t stop = vorrq_u8(
        vorrq_u8(vceqq_u8(text, vdupq_n_u8('"')), vceqq_u8(text, vdupq_n_u8('\\'))),
        vcltq_s8(vreinterpretq_s8_u8(text), vdupq_n_s8(' ')));
    uint8x16_t marked = vandq_u8(stop, vld1q_u8(bits));
    return (uint32_t)vaddv_u8(vget_low_u8(marked)) | (uint32_t)vaddv_u8(vget_high_u8(marked)) << 8;
#else
    uint32_t stops = 0;
    for (uint32_t i = 0; i < 16; i++)
        if (p[i] < 0x20 || p[i] >= 0x80 || p[i] == '"' || p[i] == '\\') stops |= 1u << i;
    return stops;
#endif
}

/// A bit for each of the sixteen bytes at `p` that is `byte`. All sixteen must be readable.
static inline __attribute__((always_inline)) uint32_t cscan_equal(const uint8_t *p, uint8_t byte) {
#if defined(__SSE2__)
    __m128i text = _mm_loadu_si128((const __m128i *)p);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8((char)byte)));
#elif defined(__ARM_NEON)
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t marked = vandq_u8(vceqq_u8(vld1q_u8(p), vdupq_n_u8(byte)), vld1q_u8(bits));
    return (uint32_t)vaddv_u8(vget_low_u8(marked)) | (uint32_t)vaddv_u8(vget_high_u8(marked)) << 8;
#else
    uint32_t equal = 0;
    for (uint32_t i = 0; i < 16; i++)
        if (p[i] == byte) equal |= 1u << i;
    return equal;
#endif
}

/// The number of bytes at `p` before the first that is a quote, a backslash, a control character or not ASCII; 16 if none
/// of the sixteen is. All sixteen must be readable.
static inline __attribute__((always_inline)) int32_t cscan_plain(const uint8_t *p) {
    return (int32_t)__builtin_ctz(cscan_stops(p) | 0x10000u);
}

/// A name of at most fifteen bytes, with the quote that ends it, as it stood in a line; one that is longer is not kept.
struct cscan_name {
    uint8_t text[16];
    /// A bit for each byte that counts; the seventeenth, which no comparison can give, where nothing is kept.
    uint32_t mask;
    uint32_t length;
};

/// What `mask` is where nothing is kept.
#define CSCAN_NOTHING 0x10000u

/// Whether the sixteen bytes at `p`, all of which must be readable, begin with that name and the quote after it.
static inline __attribute__((always_inline)) bool cscan_is(const uint8_t *p, const struct cscan_name *name) {
#if defined(__SSE2__)
    __m128i text = _mm_loadu_si128((const __m128i *)p);
    __m128i kept = _mm_loadu_si128((const __m128i *)name->text);
    return (~(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, kept)) & name->mask) == 0;
#else
    return name->mask != CSCAN_NOTHING && __builtin_memcmp(p, name->text, name->length + 1) == 0;
#endif
}

/// Keeps a name of `length` bytes, after which its quote stands; sixteen bytes must be readable at `p`.
static inline __attribute__((always_inline)) void cscan_keep(struct cscan_name *name, const uint8_t *p, uint32_t length) {
    __builtin_memcpy(name->text, p, 16);
    name->mask = length < 16 ? (2u << length) - 1 : CSCAN_NOTHING;
    name->length = length;
}
