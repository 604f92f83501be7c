#define _GNU_SOURCE
#include "cfaultspool.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local int armed, failure, lasting;
static _Thread_local uint64_t count, fails_at;
static _Thread_local const char *failed;
/* The only call that is counted; empty: all. */
static _Thread_local char only[32];

void faultspool_arm(const char *call, uint64_t at, int error, int all_after) {
    only[0] = 0;
    if (call) strncat(only, call, sizeof only - 1);
    count = 0;
    fails_at = at;
    failure = error;
    lasting = all_after;
    failed = NULL;
    armed = 1;
}

uint64_t faultspool_disarm(void) {
    armed = 0;
    return count;
}

const char *faultspool_failed(void) { return failed; }

int faultspool_fails(const char *call) {
    if (!armed || (only[0] && strcmp(only, call) != 0)) return 0;
    ++count;
    if (lasting ? count < fails_at : count != fails_at) return 0;
    if (!failed) failed = call;
    errno = failure;
    return 1;
}

/* The kernel's own answer: `syscall` is one of those that are taken over. */
static long ask(long number, long a, long b, long c, long d, long e, long f) {
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    result = x0;
#else
#error "which registers hold a system call?"
#endif
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2 && faultspool_fails("openat2")) return -1;
    return ask(number, a, b, c, d, e, f);
}

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0;
    va_end(list);
    if (faultspool_fails("open")) return -1;
    return (int)ask(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}

int openat(int directory, const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0;
    va_end(list);
    if (faultspool_fails("openat")) return -1;
    return (int)ask(SYS_openat, directory, (long)path, flags, mode, 0, 0);
}

int fstat(int descriptor, struct stat *status) {
    if (faultspool_fails("fstat")) return -1;
    return (int)ask(SYS_fstat, descriptor, (long)status, 0, 0, 0, 0);
}

int fstatat(int directory, const char *path, struct stat *status, int flags) {
    if (faultspool_fails("fstatat")) return -1;
    return (int)ask(SYS_newfstatat, directory, (long)path, (long)status, flags, 0, 0);
}

int fcntl(int descriptor, int command, ...) {
    va_list list;
    va_start(list, command);
    long argument = va_arg(list, long);
    va_end(list);
    if ((command == F_SETLEASE || command == F_GETLEASE) && faultspool_fails("fcntl")) return -1;
    return (int)ask(SYS_fcntl, descriptor, command, argument, 0, 0, 0);
}

ssize_t pread(int descriptor, void *bytes, size_t size, off_t offset) {
    if (faultspool_fails("pread")) return -1;
    return ask(SYS_pread64, descriptor, (long)bytes, (long)size, offset, 0, 0);
}

int inotify_add_watch(int descriptor, const char *path, uint32_t mask) {
    if (faultspool_fails("inotify_add_watch")) return -1;
    return (int)ask(SYS_inotify_add_watch, descriptor, (long)path, mask, 0, 0, 0);
}

int name_to_handle_at(int directory, const char *path, struct file_handle *handle, int *mount, int flags) {
    if (faultspool_fails("name_to_handle_at")) return -1;
    return (int)ask(SYS_name_to_handle_at, directory, (long)path, (long)handle, (long)mount, flags, 0);
}

/* The library's own, found behind ours. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

struct dirent *readdir(DIR *directory) {
    static struct dirent *(*library)(DIR *);
    if (faultspool_fails("readdir")) return NULL;
    if (!library) library = (struct dirent * (*)(DIR *)) next("readdir");
    return library(directory);
}

DIR *fdopendir(int descriptor) {
    static DIR *(*library)(int);
    if (faultspool_fails("fdopendir")) return NULL;
    if (!library) library = (DIR * (*)(int)) next("fdopendir");
    return library(descriptor);
}
