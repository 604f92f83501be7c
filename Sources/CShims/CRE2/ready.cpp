// Quick looks for the patterns that documents name. Most texts hold nothing of them; without these looks RE2 would
// search each text of each event.
#include "cre2.h"

#include <cstring>

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
bool may_be_ipv4(const Byte *start, const Byte *end) {
    auto is_stop_in_number = [](const Byte *at) -> Byte {
        return (Byte)is_digit(at[0]) & (Byte)(at[1] == '.') & (Byte)is_digit(at[2]);
    };
    if (!somewhere(start, end, 3, is_stop_in_number)) return false;
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

/// An @, however it is written.
bool may_be_email(const Byte *start, const Byte *end) {
    if (find(start, end, '@')) return true;
    for (const Byte *place = start; (place = find(place, end, '%')); place++)
        if (begins(place, end, "%40") || begins(place, end, "%25")) return true;
    for (const Byte *place = start; (place = find(place, end, '&')); place++)
        if (begins(place, end, "&#") || begins(place, end, "&commat")) return true;
    for (const Byte *place = start; (place = find(place, end, '\\')); place++)
        if (begins(place, end, "\\u0040") || begins(place, end, "\\x40")) return true;
    for (const Byte *place = start; (place = find(place, end, '\xEF')); place++)
        if (begins(place, end, "\xEF\xBC\xA0")) return true;
    return false;
}

}  // namespace

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
