#define _GNU_SOURCE
#include "clinux_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* AT_HANDLE_FID, which the headers of older systems lack. */
enum { HANDLE_FID = 0x200 };

int clinux_open_beneath(int directory, const char *path, int flags) {
    struct open_how how = {
        .flags = (uint64_t)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

/* Kept open: from here the way to a descriptor is one name, not four. */
static int own_descriptors(void) {
    static _Atomic int kept = -1;
    int known = kept;
    if (known >= 0) return known;
    int fresh = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fresh < 0) return -1;
    int none = -1;
    if (__atomic_compare_exchange_n((int *)&kept, &none, fresh, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return fresh;
    close(fresh);
    return none;
}

int clinux_reopen(int descriptor, int flags) {
    int directory = own_descriptors();
    if (directory < 0) return -1;
    char name[16];
    snprintf(name, sizeof name, "%d", descriptor);
    return openat(directory, name, flags);
}

int clinux_file_handle(int descriptor, uint8_t *handle, size_t capacity, int32_t *type) {
    union {
        struct file_handle header;
        uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } buffer;
    int mount;
    unsigned most = capacity < MAX_HANDLE_SZ ? (unsigned)capacity : MAX_HANDLE_SZ;
    buffer.header.handle_bytes = most;
    if (name_to_handle_at(descriptor, "", &buffer.header, &mount, AT_EMPTY_PATH) != 0) {
        /* An overlay has handles that only tell files apart (Linux 6.5). Others of that kind are left out: FUSE's
           are other ones after each mount. */
        struct statfs system;
        if (errno != EOPNOTSUPP) return -1;
        if (fstatfs(descriptor, &system) != 0 || system.f_type != OVERLAYFS_SUPER_MAGIC) {
            errno = EOPNOTSUPP;
            return -1;
        }
        buffer.header.handle_bytes = most;
        if (name_to_handle_at(descriptor, "", &buffer.header, &mount, AT_EMPTY_PATH | HANDLE_FID) != 0) return -1;
    }
    memcpy(handle, buffer.bytes + offsetof(struct file_handle, f_handle), buffer.header.handle_bytes);
    *type = buffer.header.handle_type;
    return (int)buffer.header.handle_bytes;
}

int clinux_birth_time(int descriptor, int64_t *nanoseconds) {
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0) return -1;
    if ((status.stx_mask & STATX_BTIME) == 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    /* It only has to tell files apart: what 64 bits do not hold wraps around. */
    *nanoseconds = (int64_t)((uint64_t)status.stx_btime.tv_sec * 1000000000u + status.stx_btime.tv_nsec);
    return 0;
}

int64_t clinux_next_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int clinux_rename_new(int old_directory, const char *old_name, int new_directory, const char *new_name) {
    return renameat2(old_directory, old_name, new_directory, new_name, RENAME_NOREPLACE);
}

int clinux_sync_file_system(int descriptor) { return syncfs(descriptor); }

int clinux_take_lease(int descriptor) { return fcntl(descriptor, F_SETLEASE, F_RDLCK); }

int clinux_holds_lease(int descriptor) {
    int type = fcntl(descriptor, F_GETLEASE);
    return type < 0 ? -1 : type == F_RDLCK;
}

int clinux_return_lease(int descriptor) { return fcntl(descriptor, F_SETLEASE, F_UNLCK); }
