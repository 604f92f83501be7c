// The scanner's NEON branches against what they are to say, byte by byte. Run by scripts/arm64.

#include "CScan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__ARM_NEON)
#error "this is to be compiled for arm64: else it would compare what is not meant"
#endif

static uint64_t state;

/// SplitMix64.
static uint64_t next(void) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static uint32_t plain_stops(const uint8_t *p) {
    uint32_t stops = 0;
    for (uint32_t i = 0; i < 16; i++)
        if (p[i] < 0x20 || p[i] >= 0x80 || p[i] == '"' || p[i] == '\\') stops |= 1u << i;
    return stops;
}

static bool plain_is(const uint8_t *p, const uint8_t *name, uint32_t length) {
    return length < 16 && !memcmp(p, name, length) && p[length] == '"';
}

static int fail(const char *what, uint64_t round, const uint8_t *p) {
    printf("arm64: %s differs in round %llu:", what, (unsigned long long)round);
    for (int i = 0; i < 16; i++) printf(" %02x", p[i]);
    printf("\n");
    return 1;
}

int main(int count, char **words) {
    uint64_t seed = state = count > 1 ? strtoull(words[1], NULL, 10) : 1;
    const uint8_t edges[] = {0, 0x1F, 0x20, '!', '"', '#', '[', '\\', ']', 0x7F, 0x80, 0xFF};
    const uint64_t rounds = 3000000;
    for (uint64_t round = 0; round < rounds; round++) {
        uint8_t text[32], name[32];
        for (int i = 0; i < 32; i++) {
            uint64_t dice = next();
            // Most bytes are plain, or nothing would ever be found far from the beginning.
            text[i] = dice % 8 == 0 ? edges[(dice >> 8) % sizeof edges] : dice % 8 == 1 ? (uint8_t)(dice >> 8) : 'a' + dice % 3;
        }
        const uint8_t *p = text + next() % 16;
        uint32_t stops = plain_stops(p);
        if (cscan_stops(p) != stops) return fail("cscan_stops", round, p);
        if (cscan_plain(p) != (stops ? __builtin_ctz(stops) : 16)) return fail("cscan_plain", round, p);
        // A name that is there, one that differs by a byte, one that is too long to be kept.
        uint32_t length = next() % 18;
        memcpy(name, p, 16);
        if (length < 16) name[length] = '"';
        if (length < 16 && next() % 2) {
            text[p - text + length] = '"';
            if (length && next() % 2) name[next() % length] ^= 1;
        }
        struct cscan_name kept;
        cscan_keep(&kept, name, length);
        if (cscan_is(p, &kept) != plain_is(p, name, length)) return fail("cscan_is", round, p);
        bool is_escaped = false;
        if (cscan_text(p, p, &is_escaped) || is_escaped) return fail("cscan_text", round, p);
    }
    printf("arm64: %llu rounds of the scanner alike, seed %llu\n", (unsigned long long)rounds, (unsigned long long)seed);
    return 0;
}
