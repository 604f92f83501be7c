/// What the spool needs of the kernel and Glibc's Swift module lacks: opening beneath a directory, file handles,
/// renaming without replacing, file leases. Each returns -1 and sets errno when it fails.
#ifndef CLINUX_FILES_H
#define CLINUX_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// O_PATH: a descriptor to look at a file with, that opens nothing.
#define CLINUX_O_PATH 010000000

/// Opens `path` beneath `directory`: no symbolic or magic link anywhere on it, no way up, no other file system.
/// EXDEV: it leads out of the directory or into another file system. ELOOP: there is a link.
int clinux_open_beneath(int directory, const char *path, int flags);

/// Opens for itself what an O_PATH descriptor looks at. Needs /proc.
int clinux_reopen(int descriptor, int flags);

/// Writes the handle of an open file (O_PATH will do) to `handle` and its type to `type`.
/// Returns its length. EOPNOTSUPP: the file system has no handles, EINVAL: this kernel gives none of an overlay.
int clinux_file_handle(int descriptor, uint8_t *handle, size_t capacity, int32_t *type);

/// Reads when the file was made, in nanoseconds since 1970. EOPNOTSUPP: the file system does not say.
int clinux_birth_time(int descriptor, int64_t *nanoseconds);

/// Where the next data of an open file lies, at `offset` or behind it: what lies before is a hole.
/// ENXIO: nothing but a hole, or the end of the file. EINVAL: the file system does not say.
int64_t clinux_next_data(int descriptor, int64_t offset);

/// Renames without replacing. EEXIST: the new name is taken.
int clinux_rename_new(int old_directory, const char *old_name, int new_directory, const char *new_name);

/// Writes what the file system of an open file has not written yet (syncfs(2)).
int clinux_sync_file_system(int descriptor);

/// Takes a read lease: it holds while nobody has the file open for writing. EAGAIN: somebody has.
int clinux_take_lease(int descriptor);

/// Whether a read lease still holds: 1, or 0 when a writer wants in.
int clinux_holds_lease(int descriptor);

/// Gives a lease back.
int clinux_return_lease(int descriptor);

#endif
