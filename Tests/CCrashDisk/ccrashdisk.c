#include "ccrashdisk.h"
#include "ccrashspool.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { max_files = 16, max_regions = 64, sector = 512 };

typedef struct {
    char name[512]; /* of `disk` only */
    int exists;
    int durable; /* its directory entry survives */
    uint8_t *bytes;
    int64_t size, capacity;
    void *regions[max_regions];
} File;

typedef enum { op_write, op_truncate, op_sync, op_delete } Kind;

typedef struct {
    Kind kind;
    int file;
    int64_t offset;
    int64_t count; /* bytes written, or the new size, or whether the directory is synced */
    uint8_t *bytes;
} Operation;

typedef struct {
    sqlite3_file base;
    int file;
} Handle;

static File disk[max_files];    /* what programs see */
static File durable[max_files]; /* what is synced, at `played` operations of the tape */
static File baseline[max_files];
static Operation *tape;
static _Atomic uint64_t tape_count; /* read by other threads, too */
static uint64_t tape_capacity;
static uint64_t played;
static uint64_t *pending; /* operations played and not synced */
static uint64_t pending_count, pending_capacity;
static int recording;
static int failing;

/* --- files --- */

static void reserve(File *file, int64_t size) {
    if (size <= file->capacity) return;
    int64_t capacity = size * 2;
    file->bytes = realloc(file->bytes, (size_t)capacity);
    memset(file->bytes + file->capacity, 0, (size_t)(capacity - file->capacity));
    file->capacity = capacity;
}

static void resize(File *file, int64_t size) {
    reserve(file, size);
    if (size < file->size) memset(file->bytes + size, 0, (size_t)(file->size - size));
    file->size = size;
}

static void put(File *file, int64_t offset, const uint8_t *bytes, int64_t count) {
    if (offset + count > file->size) resize(file, offset + count);
    memcpy(file->bytes + offset, bytes, (size_t)count);
}

static void forget_regions(File *file) {
    for (int index = 0; index < max_regions; index++) {
        free(file->regions[index]);
        file->regions[index] = 0;
    }
}

static void copy(File *to, const File *from) {
    to->exists = from->exists;
    to->durable = from->durable;
    resize(to, 0);
    if (from->size > 0) put(to, 0, from->bytes, from->size);
}

static int find(const char *name, int make) {
    int unused = -1;
    for (int index = 0; index < max_files; index++) {
        if (strcmp(disk[index].name, name) == 0) return index;
        if (unused < 0 && disk[index].name[0] == 0) unused = index;
    }
    if (!make || unused < 0) return -1;
    snprintf(disk[unused].name, sizeof disk[unused].name, "%s", name);
    return unused;
}

static void log_operation(Kind kind, int file, int64_t offset, int64_t count, const void *bytes) {
    if (!recording) return;
    if (tape_count == tape_capacity) {
        tape_capacity = tape_capacity ? tape_capacity * 2 : 1024;
        tape = realloc(tape, tape_capacity * sizeof *tape);
    }
    uint8_t *kept = 0;
    if (bytes) {
        kept = malloc((size_t)count);
        memcpy(kept, bytes, (size_t)count);
    }
    tape[tape_count++] = (Operation){kind, file, offset, count, kept};
    crashspool_tick();
}

/* --- cutting power --- */

static uint64_t chance(uint64_t *state) { /* SplitMix64 */
    uint64_t mixed = (*state += 0x9E3779B97F4A7C15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static void apply(File *files, const Operation *operation) {
    File *file = &files[operation->file];
    switch (operation->kind) {
    case op_write:
        file->exists = 1;
        put(file, operation->offset, operation->bytes, operation->count);
        break;
    case op_truncate: resize(file, operation->count); break;
    case op_sync: break;
    case op_delete:
        file->exists = 0;
        file->durable = 0;
        resize(file, 0);
        break;
    }
}

/* Makes the played operations on a file durable, all of them or those before its last deletion. */
static void settle(int file) {
    uint64_t kept = 0;
    for (uint64_t index = 0; index < pending_count; index++) {
        Operation *other = &tape[pending[index]];
        if (other->file == file)
            apply(durable, other);
        else
            pending[kept++] = pending[index];
    }
    pending_count = kept;
}

/* SQLite syncs the directory with a journal's or WAL's first sync: entries and deletions are durable from then on. */
static void settle_directory(void) {
    for (int file = 0; file < max_files; file++) {
        int deleted = 0, written = 0;
        for (uint64_t index = 0; index < pending_count; index++) {
            Operation *other = &tape[pending[index]];
            if (other->file != file) continue;
            if (other->kind == op_delete) deleted = 1;
            written = other->kind != op_delete;
        }
        /* A little more than is promised of a file made anew after it was deleted: its content is durable, too. */
        if (deleted) settle(file);
        if (written || durable[file].exists) durable[file].durable = 1;
    }
}

static int is_journal(int file) {
    size_t length = strlen(disk[file].name);
    return (length > 4 && strcmp(disk[file].name + length - 4, "-wal") == 0) ||
           (length > 8 && strcmp(disk[file].name + length - 8, "-journal") == 0);
}

/* Goes on with the tape: a sync makes all before it durable, for its file. */
static void play_one(void) {
    Operation *operation = &tape[played];
    if (pending_count == pending_capacity) {
        pending_capacity = pending_capacity ? pending_capacity * 2 : 1024;
        pending = realloc(pending, pending_capacity * sizeof *pending);
    }
    pending[pending_count++] = played++;
    if (operation->kind == op_sync) {
        if (is_journal(operation->file) && !durable[operation->file].durable) settle_directory();
        settle(operation->file);
    } else if (operation->kind == op_delete && operation->count) {
        settle_directory();
    }
}

static void rewind_tape(void) {
    for (int index = 0; index < max_files; index++) {
        copy(&durable[index], &baseline[index]);
        durable[index].durable = durable[index].exists;
    }
    played = 0;
    pending_count = 0;
}

void crashdisk_cut(uint64_t operations, uint64_t seed, int process_only) {
    recording = 0;
    failing = 0;
    if (operations > tape_count) operations = tape_count;
    if (operations < played) rewind_tape();
    while (played < operations) play_one();
    for (int index = 0; index < max_files; index++) {
        forget_regions(&disk[index]);
        copy(&disk[index], &durable[index]);
    }
    uint64_t state = seed;
    for (uint64_t index = 0; index < pending_count; index++) {
        Operation *operation = &tape[pending[index]];
        uint64_t choice = process_only ? 0 : chance(&state) % 4;
        if (choice == 1) continue;
        if (choice < 3 || operation->kind != op_write) {
            apply(disk, operation);
            continue;
        }
        /* Torn: some of its sectors. */
        File *file = &disk[operation->file];
        file->exists = 1;
        for (int64_t at = 0; at < operation->count;) {
            int64_t end = (operation->offset + at) / sector * sector + sector - operation->offset;
            if (end > operation->count) end = operation->count;
            if (chance(&state) & 1) put(file, operation->offset + at, operation->bytes + at, end - at);
            at = end;
        }
    }
    for (int index = 0; index < max_files; index++) {
        if (!process_only && disk[index].exists && !disk[index].durable && chance(&state) & 1) {
            disk[index].exists = 0;
            resize(&disk[index], 0);
        }
    }
}

void crashdisk_record(void) {
    for (uint64_t index = 0; index < tape_count; index++) free(tape[index].bytes);
    tape_count = 0;
    for (int index = 0; index < max_files; index++) copy(&baseline[index], &disk[index]);
    rewind_tape();
    recording = 1;
}

uint64_t crashdisk_operations(void) { return tape_count; }

void crashdisk_fail(int error_number) { failing = error_number; }

/* --- SQLite's methods --- */

static File *file_of(sqlite3_file *handle) { return &disk[((Handle *)handle)->file]; }

static int close_file(sqlite3_file *handle) {
    (void)handle;
    return SQLITE_OK;
}

static int read_file(sqlite3_file *handle, void *buffer, int count, sqlite3_int64 offset) {
    File *file = file_of(handle);
    int64_t there = file->size - offset;
    if (there < 0) there = 0;
    if (there > count) there = count;
    if (there > 0) memcpy(buffer, file->bytes + offset, (size_t)there);
    if (there == count) return SQLITE_OK;
    memset((uint8_t *)buffer + there, 0, (size_t)(count - there));
    return SQLITE_IOERR_SHORT_READ;
}

static int failure(void) { return failing == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE; }

static int write_file(sqlite3_file *handle, const void *buffer, int count, sqlite3_int64 offset) {
    if (failing) return failure();
    File *file = file_of(handle);
    put(file, offset, buffer, count);
    log_operation(op_write, ((Handle *)handle)->file, offset, count, buffer);
    return SQLITE_OK;
}

static int truncate_file(sqlite3_file *handle, sqlite3_int64 size) {
    if (failing) return failure();
    resize(file_of(handle), size);
    log_operation(op_truncate, ((Handle *)handle)->file, 0, size, 0);
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *handle, int flags) {
    (void)flags;
    if (failing) return SQLITE_IOERR_FSYNC;
    log_operation(op_sync, ((Handle *)handle)->file, 0, 0, 0);
    return SQLITE_OK;
}

static int file_size(sqlite3_file *handle, sqlite3_int64 *size) {
    *size = file_of(handle)->size;
    return SQLITE_OK;
}

static int no_lock(sqlite3_file *handle, int level) {
    (void)handle, (void)level;
    return SQLITE_OK;
}

static int no_reserved_lock(sqlite3_file *handle, int *result) {
    (void)handle;
    *result = 0;
    return SQLITE_OK;
}

static int no_control(sqlite3_file *handle, int operation, void *argument) {
    (void)handle, (void)operation, (void)argument;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *handle) {
    (void)handle;
    return 4096;
}

static int characteristics(sqlite3_file *handle) {
    (void)handle;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int map_memory(sqlite3_file *handle, int region, int size, int extend, void volatile **memory) {
    File *file = file_of(handle);
    if (region >= max_regions) return SQLITE_IOERR_SHMMAP;
    if (!file->regions[region] && extend) file->regions[region] = calloc(1, (size_t)size);
    *memory = file->regions[region];
    return SQLITE_OK;
}

static int lock_memory(sqlite3_file *handle, int offset, int count, int flags) {
    (void)handle, (void)offset, (void)count, (void)flags;
    return SQLITE_OK;
}

static void memory_barrier(sqlite3_file *handle) { (void)handle; }

static int unmap_memory(sqlite3_file *handle, int delete_flag) {
    (void)delete_flag;
    forget_regions(file_of(handle));
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    2,           close_file,      read_file,        write_file,     truncate_file, sync_file,     file_size,    no_lock,
    no_lock,     no_reserved_lock, no_control,       sector_size,    characteristics, map_memory, lock_memory,  memory_barrier,
    unmap_memory, 0,               0,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *handle, int flags, int *out) {
    (void)vfs;
    ((Handle *)handle)->base.pMethods = 0;
    char unnamed[32];
    static int next;
    if (!name) {
        snprintf(unnamed, sizeof unnamed, "temporary-%d", next++ % 4);
        name = unnamed;
    }
    int file = find(name, flags & SQLITE_OPEN_CREATE);
    if (file < 0 || (!disk[file].exists && !(flags & SQLITE_OPEN_CREATE))) return SQLITE_CANTOPEN;
    disk[file].exists = 1;
    ((Handle *)handle)->file = file;
    ((Handle *)handle)->base.pMethods = &methods;
    if (out) *out = flags;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync_directory) {
    (void)vfs;
    int file = find(name, 0);
    if (file < 0 || !disk[file].exists) return SQLITE_IOERR_DELETE_NOENT;
    if (failing) return SQLITE_IOERR_DELETE;
    disk[file].exists = 0;
    resize(&disk[file], 0);
    log_operation(op_delete, file, 0, sync_directory, 0);
    return SQLITE_OK;
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs, (void)flags;
    int file = find(name, 0);
    *result = file >= 0 && disk[file].exists && (flags != SQLITE_ACCESS_EXISTS || disk[file].size > 0);
    return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int count, char *full) {
    (void)vfs;
    snprintf(full, (size_t)count, "%s", name);
    return SQLITE_OK;
}

static int last_error(sqlite3_vfs *vfs, int count, char *text) {
    (void)vfs, (void)count, (void)text;
    return failing;
}

void crashdisk_reset(void) {
    static sqlite3_vfs vfs;
    sqlite3_vfs *system = sqlite3_vfs_find(0);
    if (system && !sqlite3_vfs_find("crashdisk")) {
        vfs = *system;
        vfs.iVersion = 2;
        vfs.szOsFile = sizeof(Handle);
        vfs.zName = "crashdisk";
        vfs.xOpen = open_file;
        vfs.xDelete = delete_file;
        vfs.xAccess = access_file;
        vfs.xFullPathname = full_name;
        vfs.xGetLastError = last_error;
        vfs.pNext = 0;
        sqlite3_vfs_register(&vfs, 0);
    }
    recording = 0;
    failing = 0;
    for (int index = 0; index < max_files; index++) {
        forget_regions(&disk[index]);
        resize(&disk[index], 0);
        disk[index].name[0] = 0;
        disk[index].exists = 0;
    }
    crashdisk_record();
    recording = 0;
}
