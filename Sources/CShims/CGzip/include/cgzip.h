/// gzip by ISA-L, one member a call: what Swift cannot import of it (structs with arrays of thousands), and no more.
#ifndef CGZIP_H
#define CGZIP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgzip_packer cgzip_packer;
typedef struct cgzip_unpacker cgzip_unpacker;

/// Working memory for packing, about 170 KB, to be kept between calls; NULL when there is no memory.
cgzip_packer *cgzip_packer_new(void);
void cgzip_packer_free(cgzip_packer *packer);

/// The most bytes that a member of so many bytes has.
size_t cgzip_bound(size_t length);

/// Packs bytes into one member. The room must be the bound.
/// @return the member's bytes; 0 when the bytes are too many for gzip (4 GiB).
size_t cgzip_pack(cgzip_packer *packer, const uint8_t *bytes, size_t length, uint8_t *member, size_t room);

/// Working memory for unpacking, about 90 KB, to be kept between calls; NULL when there is no memory.
cgzip_unpacker *cgzip_unpacker_new(void);
void cgzip_unpacker_free(cgzip_unpacker *unpacker);

/// What unpacking came to.
enum {
    CGZIP_WHOLE = 0,
    /// Not one whole member and nothing after it, or a damaged one.
    CGZIP_CORRUPT = 1,
    /// It unpacks to more than there is room for.
    CGZIP_TOO_LARGE = 2,
};

/// Unpacks one member into room that bounds it.
int cgzip_unpack(
    cgzip_unpacker *unpacker, const uint8_t *member, size_t length, uint8_t *bytes, size_t room, size_t *count);

/// The CRC-32 of gzip.
uint32_t cgzip_crc32(uint32_t initial, const void *bytes, size_t length);

/// The CRC-32 of iSCSI, not inverted.
uint32_t cgzip_crc32c(uint32_t initial, const void *bytes, size_t length);

/// The library's version that it was built with.
const char *cgzip_version(void);

#ifdef __cplusplus
}
#endif

#endif
