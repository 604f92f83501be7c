// Quick looks for the patterns that documents name. Most texts hold nothing of them; without these looks RE2 would
// search each text of each event.
#include "cre2.h"

#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace {

using Byte = uint8_t;

/// A set of bytes.
struct Set {
    bool has[256] = {};
    explicit Set(const char *bytes, bool beyond_ascii = false) {
        for (; *bytes; bytes++) has[(Byte)*bytes] = true;
        for (int byte = 0x80; byte < 256; byte++) has[byte] = beyond_ascii;
    }
};

const Set hexadecimal_and_marks("0123456789abcdefABCDEF:.");
// Spaces and dashes beyond ASCII, and fullwidth digits, are not told apart here.
const Set digits_and_gaps("0123456789 -\t./_", true);

bool is_digit(Byte byte) { return (Byte)(byte - '0') < 10; }

const Byte *find(const Byte *from, const Byte *end, char byte) {
    return (const Byte *)std::memchr(from, byte, end - from);
}

bool begins(const Byte *place, const Byte *end, const char *word) {
    size_t length = std::strlen(word);
    return (size_t)(end - place) >= length && std::memcmp(place, word, length) == 0;
}

/// The next run of at least `least` bytes of a set; false at the end. Where there is none, it looks at one byte in `least`.
bool next_run(const Byte *&start, const Byte *&run_end, const Byte *end, const Set &set, ptrdiff_t least) {
    while (end - start >= least) {
        ptrdiff_t back = least;
        while (back > 0 && set.has[start[back - 1]]) back--;
        if (back > 0) {
            start += back;
            continue;
        }
        for (run_end = start + least; run_end < end && set.has[*run_end];) run_end++;
        return true;
    }
    return false;
}

/// Whether a test holds somewhere for `length` bytes in a row. Compilers test 16 and more places at a time, so all are tested.
template <typename Test>
bool somewhere(const Byte *start, const Byte *end, ptrdiff_t length, Test test) {
    Byte any = 0;
    for (ptrdiff_t place = 0; place <= end - start - length; place++) any |= test(start + place);
    return any != 0;
}

/// Four numbers with full stops between them.
bool has_four_numbers(const Byte *start, const Byte *end) {
    for (const Byte *place = start; const Byte *stop = find(place, end, '.');) {
        place = stop + 1;
        if (stop == start || !is_digit(stop[-1])) continue;
        int stops = 0;
        for (const Byte *next = stop; next < end && *next == '.'; stops++) {
            const Byte *digit = next + 1;
            while (digit < end && is_digit(*digit)) digit++;
            if (digit == next + 1) break;
            if (stops == 2) return true;
            place = next = digit;
        }
    }
    return false;
}

bool may_be_ipv4(const Byte *start, const Byte *end) {
    auto is_stop_in_number = [](const Byte *at) -> Byte {
        return (Byte)is_digit(at[0]) & (Byte)(at[1] == '.') & (Byte)is_digit(at[2]);
    };
    return somewhere(start, end, 3, is_stop_in_number) && has_four_numbers(start, end);
}

/// Two colons in a row, or seven with nothing but hexadecimal digits and full stops between them.
bool may_be_ipv6(const Byte *start, const Byte *end) {
    if (somewhere(start, end, 2, [](const Byte *at) -> Byte { return (at[0] == ':') & (at[1] == ':'); })) return true;
    // Eight groups of a digit or more, the first of which may be missing.
    const Byte *run_end = nullptr;
    for (; next_run(start, run_end, end, hexadecimal_and_marks, 14); start = run_end) {
        int colons = 0;
        for (const Byte *place = start; place < run_end; place++) colons += *place == ':';
        if (colons >= 7) return true;
    }
    return false;
}

/// Thirteen digits from one on that begins a group as cards begin, 2 to 6, with nothing but gaps between them.
bool may_be_card(const Byte *start, const Byte *end) {
    const Byte *run_end = nullptr;
    for (; next_run(start, run_end, end, digits_and_gaps, 13); start = run_end) {
        int digits = 0;
        bool goes_on = false;
        for (const Byte *place = start; place < run_end; place++) {
            bool is_wide = run_end - place > 2 && begins(place, run_end, "\xEF\xBC") && (Byte)(place[2] - 0x90) < 10;
            Byte byte = is_wide ? place[2] - 0x60 : *place;
            bool digit = is_digit(byte);
            bool begins_card = !goes_on && byte >= '2' && byte <= '6';
            if (digit && (digits > 0 || begins_card) && ++digits >= 13) return true;
            goes_on = digit && !is_wide;
            if (is_wide) place += 2;
        }
    }
    return false;
}

bool may_be_bearer(const Byte *start, const Byte *end) {
    return somewhere(start, end, 6, [](const Byte *at) -> Byte {
        return ((at[0] | 0x20) == 'b') & ((at[1] | 0x20) == 'e') & ((at[2] | 0x20) == 'a') & ((at[3] | 0x20) == 'r')
            & ((at[4] | 0x20) == 'e') & ((at[5] | 0x20) == 'r');
    });
}

bool may_be_jwt(const Byte *start, const Byte *end) {
    return somewhere(
        start, end, 3, [](const Byte *at) -> Byte { return (at[0] == 'e') & (at[1] == 'y') & (at[2] == 'J'); });
}

/// Whether an @ stands at a place, however it is written.
bool is_at_sign(const Byte *place, const Byte *end) {
    switch (*place) {
    case '@': return true;
    case '%': return begins(place, end, "%40") || begins(place, end, "%25");
    case '&': return begins(place, end, "&#") || begins(place, end, "&commat");
    case '\\': return begins(place, end, "\\u0040") || begins(place, end, "\\x40");
    case 0xEF: return begins(place, end, "\xEF\xBC\xA0");
    default: return false;
    }
}

/// An @, however it is written.
bool may_be_email(const Byte *start, const Byte *end) {
    static const char firsts[] = {'@', '%', '&', '\\', '\xEF'};
    for (char first : firsts)
        for (const Byte *place = start; (place = find(place, end, first)); place++)
            if (is_at_sign(place, end)) return true;
    return false;
}

/// All patterns, a bit each.
constexpr uint32_t all_patterns = (1u << (cre2_bearer_token + 1)) - 1;

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,popcnt")))

/// A bit for each of 64 bytes: the 32 that are looked at, behind the 32 before them.
using Bits = uint64_t;

/// Bytes of one kind.
struct Kind {
    Bits bits = 0;
    void shift_in(uint32_t next) { bits = bits >> 32 | (Bits)next << 32; }
    /// Places of which the byte so far behind is of the kind.
    Bits behind(int distance) const { return bits >> distance; }
};

/// Places where a run of `Length` bits begins.
template <int Length>
Bits runs(Bits bits) {
    int have = 1;
    while (have < Length) {
        int step = have < Length - have ? have : Length - have;
        bits &= bits >> step;
        have += step;
    }
    return bits;
}

AVX2 __m256i is(__m256i bytes, char byte) {
    return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte));
}

AVX2 __m256i is_between(__m256i bytes, char first, char last) {
    __m256i place = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(place, _mm256_set1_epi8(last - first)), place);
}

AVX2 uint32_t places(__m256i bytes) { return (uint32_t)_mm256_movemask_epi8(bytes); }

/// The patterns of which a text has what each match of theirs has. One pass for all of them, 32 bytes at a time: most texts
/// have nothing of it, and the others are searched for these patterns alone.
AVX2 uint32_t suspects(const Byte *start, const Byte *end, uint32_t wanted) {
    Kind digits, stops, colons, hexadecimals, gaps, letters_b, letters_e, letters_y, letters_J;
    uint32_t found = 0;
    int inner_stops = 0, inner_colons = 0;
    for (const Byte *place = start; place < end && found != wanted; place += 32) {
        __m256i bytes;
        if (end - place >= 32) {
            bytes = _mm256_loadu_si256((const __m256i *)place);
        } else {
            Byte last[32] = {};
            std::memcpy(last, place, end - place);
            bytes = _mm256_loadu_si256((const __m256i *)last);
        }
        __m256i small = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        __m256i digit = is_between(bytes, '0', '9');
        __m256i stop = is(bytes, '.');
        __m256i gap = _mm256_or_si256(
            _mm256_or_si256(_mm256_or_si256(is(bytes, ' '), is(bytes, '-')), _mm256_or_si256(is(bytes, '\t'), is(bytes, '/'))),
            _mm256_or_si256(_mm256_or_si256(is(bytes, '_'), stop), _mm256_or_si256(digit, bytes)));
        __m256i sign = _mm256_or_si256(
            _mm256_or_si256(is(bytes, '@'), is(bytes, '%')),
            _mm256_or_si256(_mm256_or_si256(is(bytes, '&'), is(bytes, '\\')), is(bytes, '\xEF')));
        digits.shift_in(places(digit));
        stops.shift_in(places(stop));
        colons.shift_in(places(is(bytes, ':')));
        hexadecimals.shift_in(places(_mm256_or_si256(_mm256_or_si256(digit, stop), is_between(small, 'a', 'f'))));
        gaps.shift_in(places(gap));
        letters_b.shift_in(places(is(small, 'b')));
        letters_e.shift_in(places(is(small, 'e')));
        letters_y.shift_in(places(is(bytes, 'y')));
        letters_J.shift_in(places(is(bytes, 'J')));

        for (uint32_t signs = places(sign); signs; signs &= signs - 1)
            if (is_at_sign(place + __builtin_ctz(signs), end)) found |= 1u << cre2_email;
        // Three full stops between digits.
        inner_stops += __builtin_popcountll((digits.bits & stops.behind(1) & digits.behind(2)) >> 30);
        if (inner_stops >= 3) found |= 1u << cre2_ipv4;
        // Of seven colons the inner five stand between digits.
        inner_colons += __builtin_popcountll((hexadecimals.bits & colons.behind(1) & hexadecimals.behind(2)) >> 30);
        if (colons.bits & colons.behind(1) || inner_colons >= 5) found |= 1u << cre2_ipv6;
        if (runs<13>(gaps.bits)) found |= 1u << cre2_credit_card;
        // `be..e` of bearer, and `yJ` of eyJ.
        if (letters_b.bits & letters_e.behind(1) & letters_e.behind(4)) found |= 1u << cre2_bearer_token;
        if (letters_y.bits & letters_J.behind(1)) found |= 1u << cre2_jwt;
        found &= wanted;
    }
    return found;
}
#endif

}  // namespace

bool cre2_may_hold_any(uint32_t patterns, const void *text, size_t length) {
    uint32_t rest = patterns & all_patterns;
#ifdef __x86_64__
    // For a few patterns their own looks are quicker.
    if (__builtin_popcount(rest) > 3 && __builtin_cpu_supports("avx2")) {
        const Byte *start = (const Byte *)text;
        rest = suspects(start, start + length, rest);
        // Many lines have three full stops in numbers, and none of them in one.
        if (rest & 1u << cre2_ipv4 && !has_four_numbers(start, start + length)) rest &= ~(1u << cre2_ipv4);
    }
#endif
    for (uint32_t pattern = 0; rest; pattern++, rest >>= 1)
        if (rest & 1 && cre2_may_hold((cre2_ready)pattern, text, length)) return true;
    return false;
}

bool cre2_may_hold(cre2_ready pattern, const void *text, size_t length) {
    const Byte *start = (const Byte *)text, *end = start + length;
    switch (pattern) {
    case cre2_email: return may_be_email(start, end);
    case cre2_ipv4: return may_be_ipv4(start, end);
    case cre2_ipv6: return may_be_ipv6(start, end);
    case cre2_jwt: return may_be_jwt(start, end);
    case cre2_credit_card: return may_be_card(start, end);
    case cre2_bearer_token: return may_be_bearer(start, end);
    }
    return true;
}
