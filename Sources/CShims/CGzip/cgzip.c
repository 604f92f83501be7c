#include "cgzip.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>

// The buffer of 16,384 tokens costs 84 KB; one of 65,536 packed frames of any size no faster, and 0.1 % smaller.
struct cgzip_packer {
    struct isal_zstream stream;
    _Alignas(64) uint8_t level_buffer[ISAL_DEF_LVL1_SMALL];
};

// A header without a name or a time: deflate, no flags, unknown system.
static const uint8_t header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
enum { header_size = sizeof header, trailer_size = 8, stored_most = 65535 };

cgzip_packer *cgzip_packer_new(void) { return aligned_alloc(64, sizeof(cgzip_packer)); }
void cgzip_packer_free(cgzip_packer *packer) { free(packer); }

size_t cgzip_bound(size_t length) {
    // As it is stored: five bytes a block, one block at least.
    return header_size + trailer_size + length + 5 * (length / stored_most + 1);
}

static void put32(uint8_t *place, uint32_t value) {
    for (int byte = 0; byte < 4; byte++) place[byte] = (uint8_t)(value >> (8 * byte));
}

// A member of stored blocks: what cannot be packed still fits the bound.
static size_t store(const uint8_t *bytes, size_t length, uint8_t *member) {
    uint8_t *out = member;
    memcpy(out, header, header_size);
    out += header_size;
    size_t at = 0;
    do {
        const size_t block = length - at < stored_most ? length - at : stored_most;
        *out++ = at + block == length;
        *out++ = (uint8_t)block;
        *out++ = (uint8_t)(block >> 8);
        *out++ = (uint8_t)~block;
        *out++ = (uint8_t)(~block >> 8);
        if (block > 0) memcpy(out, bytes + at, block);
        out += block;
        at += block;
    } while (at < length);
    put32(out, cgzip_crc32(0, bytes, length));
    put32(out + 4, (uint32_t)length);
    return (size_t)(out + trailer_size - member);
}

size_t cgzip_pack(cgzip_packer *packer, const uint8_t *bytes, size_t length, uint8_t *member, size_t room) {
    static const uint8_t nothing;
    if (!bytes) bytes = &nothing;
    if (length > UINT32_MAX - (1 << 20) || room < cgzip_bound(length)) return 0;
    struct isal_zstream *stream = &packer->stream;
    isal_deflate_stateless_init(stream);
    stream->level = 1;
    stream->level_buf = packer->level_buffer;
    stream->level_buf_size = sizeof packer->level_buffer;
    stream->gzip_flag = IGZIP_GZIP;
    stream->end_of_stream = 1;
    stream->flush = NO_FLUSH;
    stream->next_in = (uint8_t *)bytes;
    stream->avail_in = (uint32_t)length;
    stream->next_out = member;
    stream->avail_out = (uint32_t)room;
    if (isal_deflate_stateless(stream) == COMP_OK && stream->avail_in == 0) return stream->total_out;
    return store(bytes, length, member);
}

struct cgzip_unpacker {
    struct inflate_state state;
};

cgzip_unpacker *cgzip_unpacker_new(void) { return malloc(sizeof(cgzip_unpacker)); }
void cgzip_unpacker_free(cgzip_unpacker *unpacker) { free(unpacker); }

int cgzip_unpack(
    cgzip_unpacker *unpacker, const uint8_t *member, size_t length, uint8_t *bytes, size_t room, size_t *count) {
    *count = 0;
    // The library reads on where a header has flags that RFC 1952 reserves.
    if (length < header_size + trailer_size || length > UINT32_MAX || (member[3] & 0xe0)) return CGZIP_CORRUPT;
    if (room > UINT32_MAX) room = UINT32_MAX;
    struct inflate_state *state = &unpacker->state;
    isal_inflate_init(state);
    state->crc_flag = ISAL_GZIP;
    state->next_in = (uint8_t *)member;
    state->avail_in = (uint32_t)length;
    state->next_out = bytes;
    state->avail_out = (uint32_t)room;
    switch (isal_inflate_stateless(state)) {
    case ISAL_DECOMP_OK: break;
    case ISAL_OUT_OVERFLOW: return CGZIP_TOO_LARGE;
    default: return CGZIP_CORRUPT;
    }
    if (state->block_state != ISAL_BLOCK_FINISH || state->avail_in != 0) return CGZIP_CORRUPT;
    *count = state->total_out;
    return CGZIP_WHOLE;
}

uint32_t cgzip_crc32(uint32_t initial, const void *bytes, size_t length) {
    return crc32_gzip_refl(initial, bytes, length);
}

uint32_t cgzip_crc32c(uint32_t initial, const void *bytes, size_t length) {
    return crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)length, initial);
}

#define TEXT(x) #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
const char *cgzip_version(void) { return VERSION(ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION); }
