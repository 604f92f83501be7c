#define _GNU_SOURCE
#include "ccrashspool.h"
#include "ccrashdisk.h"
#include "cfaultspool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { longest = 1024 };

typedef struct {
    uint64_t inode;
    char *from, *to; /* paths; `from` of a file that was made is where it goes when that is undone */
    int from_synced, to_synced;
} Change;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int active, frozen;
static char root[longest], aside[longest];
static uint64_t ticks, freeze_at, place, asides;
static Change *changes;
static uint64_t change_count, change_capacity;

static int is_inside(const char *path) {
    size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The path that a call means. */
static int resolve(int directory, const char *name, char *path) {
    if (name[0] == '/') {
        snprintf(path, longest, "%s", name);
        return 1;
    }
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, path, longest - 300);
    if (length <= 0) return 0;
    path[length] = 0;
    if (name[0]) snprintf(path + length, (size_t)(longest - length), "/%s", name);
    return 1;
}

static void stand_still(void) {
    if (frozen) return;
    frozen = 1;
    place = crashdisk_operations();
}

static void tick(void) {
    if (active && !frozen && ++ticks >= freeze_at) stand_still();
}

void crashspool_tick(void) {
    pthread_mutex_lock(&lock);
    tick();
    pthread_mutex_unlock(&lock);
}

static void note(const char *from, const char *to) {
    if (change_count == change_capacity) {
        change_capacity = change_capacity ? change_capacity * 2 : 256;
        changes = realloc(changes, change_capacity * sizeof *changes);
    }
    struct stat status;
    uint64_t inode = lstat(to, &status) == 0 ? status.st_ino : 0;
    changes[change_count++] = (Change){inode, strdup(from), strdup(to), !is_inside(from), !is_inside(to)};
    tick();
}

/* --- the calls that are taken over --- */

int renameat2(int old_directory, const char *old_name, int new_directory, const char *new_name, unsigned flags) {
    if (faultspool_fails("renameat2")) return -1;
    pthread_mutex_lock(&lock);
    char from[longest], to[longest];
    if (!active || !resolve(old_directory, old_name, from) || !resolve(new_directory, new_name, to) || !is_inside(from)) {
        pthread_mutex_unlock(&lock);
        return (int)syscall(SYS_renameat2, old_directory, old_name, new_directory, new_name, flags);
    }
    int result = -1, error = EIO;
    if (!frozen) {
        result = (int)syscall(SYS_renameat2, old_directory, old_name, new_directory, new_name, flags);
        error = errno;
        if (result == 0) note(from, to);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int unlinkat(int directory, const char *name, int flags) {
    if (faultspool_fails("unlinkat")) return -1;
    pthread_mutex_lock(&lock);
    char from[longest], to[longest + 32];
    if (!active || (flags & AT_REMOVEDIR) || !resolve(directory, name, from) || !is_inside(from)) {
        pthread_mutex_unlock(&lock);
        return (int)syscall(SYS_unlinkat, directory, name, flags);
    }
    int result = -1, error = EIO;
    if (!frozen) {
        snprintf(to, sizeof to, "%s/%llu", aside, (unsigned long long)asides++);
        result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
        error = errno;
        if (result == 0) note(from, to);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

static int lies_in(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

int fsync(int descriptor) {
    if (faultspool_fails("fsync")) return -1;
    pthread_mutex_lock(&lock);
    char path[longest];
    if (!active || !resolve(descriptor, "", path) || !is_inside(path)) {
        pthread_mutex_unlock(&lock);
        return (int)syscall(SYS_fsync, descriptor);
    }
    int result = frozen ? -1 : 0;
    if (!frozen) {
        for (uint64_t index = 0; index < change_count; index++) {
            if (lies_in(changes[index].from, path)) changes[index].from_synced = 1;
            if (lies_in(changes[index].to, path)) changes[index].to_synced = 1;
        }
        tick();
    }
    pthread_mutex_unlock(&lock);
    if (result != 0) errno = EIO;
    return result;
}

/* --- the test's side --- */

static void forget(void) {
    for (uint64_t index = 0; index < change_count; index++) {
        free(changes[index].from);
        free(changes[index].to);
    }
    change_count = 0;
}

void crashspool_begin(const char *directory, const char *elsewhere, uint64_t operations) {
    pthread_mutex_lock(&lock);
    forget();
    snprintf(root, sizeof root, "%s", directory);
    snprintf(aside, sizeof aside, "%s", elsewhere);
    ticks = 0;
    freeze_at = operations;
    frozen = 0;
    active = 1;
    pthread_mutex_unlock(&lock);
}

void crashspool_freeze(void) {
    pthread_mutex_lock(&lock);
    stand_still();
    pthread_mutex_unlock(&lock);
}

int crashspool_frozen(void) {
    pthread_mutex_lock(&lock);
    int result = frozen;
    pthread_mutex_unlock(&lock);
    return result;
}

uint64_t crashspool_place(void) { return place; }

void crashspool_made(const char *path) {
    pthread_mutex_lock(&lock);
    char nowhere[longest + 32];
    snprintf(nowhere, sizeof nowhere, "%s/%llu", aside, (unsigned long long)asides++);
    if (active && !frozen) note(nowhere, path);
    pthread_mutex_unlock(&lock);
}

int crashspool_rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

static uint64_t chance(uint64_t *state) { /* SplitMix64 */
    uint64_t mixed = (*state += 0x9E3779B97F4A7C15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static void empty_aside(void) {
    DIR *directory = opendir(aside);
    if (!directory) return;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] != '.') syscall(SYS_unlinkat, dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
}

uint64_t crashspool_cut(uint64_t seed, int process_only) {
    pthread_mutex_lock(&lock);
    active = 0;
    uint64_t state = seed, undone = 0;
    /* Of four changes one, two or all are lost. */
    uint64_t odds = (uint64_t[]){1, 2, 4}[chance(&state) % 3];
    for (uint64_t index = change_count; !process_only && index-- > 0;) {
        Change *change = &changes[index];
        int keeps = (change->from_synced && change->to_synced) || change->inode == 0 || chance(&state) % 4 >= odds;
        /* A later change of the same file that is kept keeps this one; and a name that another file has by now, too. */
        for (uint64_t later = index + 1; later < change_count && !keeps; later++)
            keeps = changes[later].inode == change->inode && changes[later].to_synced != 2;
        if (keeps || syscall(SYS_renameat2, AT_FDCWD, change->to, AT_FDCWD, change->from, RENAME_NOREPLACE) != 0) continue;
        change->to_synced = 2; /* undone */
        undone++;
    }
    forget();
    empty_aside();
    pthread_mutex_unlock(&lock);
    return undone;
}
