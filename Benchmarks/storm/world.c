// Preloaded into the agent under the storm: a time of day of its own, and a disk that turns read-only under open files.
//
// Imitated:
// * The time of day is the machine's plus an offset (clock_gettime with CLOCK_REALTIME, gettimeofday, time). OpenSSL, libcurl and SQLite
//   ask here, too. The clocks for waits stay what they are, as they do when a person sets the clock.
// * A timer that is cancelled when the clock is set (TFD_TIMER_CANCEL_ON_SET) is a pipe, into which the storm writes at each step:
//   reading it fails with ECANCELED, as reading the timer would.
// * What the kernel says of its clock (adjtimex): synchronised, not synchronised, or that it may not be asked, as in the unit.
// * Writing below the state directory fails with EROFS, also to files that are open: so it is after the kernel has met an error on a
//   disk. A remount cannot do that, because it is refused while a file is open for writing.
//
// Not imitated: the times of files, which the kernel writes by its own clock, so files are as old as the clock's steps make them look;
// waits of threads until a time of day (the agent has none); the clocks of vdso calls that pass by libc (the agent makes none).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

// The storm writes it, world.py has the same layout.
struct world {
    int64_t seconds_ahead;
    int32_t synchronised;  // 1, 0, or -1: not to be asked
    int32_t read_only;
};

static volatile struct world *world;
static int steps = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL do { errno = EROFS; return -1; } while (0)

static volatile struct world *now(void) {
    static struct world same = {0, 1, 0};
    if (world) return world;
    const char *path = getenv("STORM_WORLD");
    const int fd = path ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *world, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    return world = found == MAP_FAILED ? &same : found;
}

// The time of day.

int clock_gettime(clockid_t clock, struct timespec *time) {
    const int result = REAL(clock_gettime)(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += now()->seconds_ahead;
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    *time = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    (void)zone;
    return 0;
}

time_t time(time_t *result) {
    struct timespec found = {0};
    clock_gettime(CLOCK_REALTIME, &found);
    if (result) *result = found.tv_sec;
    return found.tv_sec;
}

int adjtimex(struct timex *state) {
    if (now()->synchronised < 0) {
        errno = EPERM;
        return -1;
    }
    *state = (struct timex){.status = now()->synchronised ? 0 : STA_UNSYNC};
    return now()->synchronised ? TIME_OK : TIME_ERROR;
}

// Steps of the time of day.

int timerfd_create(clockid_t clock, int flags) {
    const char *path = getenv("STORM_STEPS");
    if (clock != CLOCK_REALTIME || !path) return REAL(timerfd_create)(clock, flags);
    // For writing, too: a pipe without a writer would be at its end.
    return steps = REAL(open)(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int timerfd_settime(int timer, int flags, const struct itimerspec *new, struct itimerspec *old) {
    return timer == steps ? 0 : REAL(timerfd_settime)(timer, flags, new, old);
}

ssize_t read(int fd, void *buffer, size_t size) {
    const ssize_t result = REAL(read)(fd, buffer, size);
    if (fd != steps || result <= 0) return result;
    errno = ECANCELED;
    return -1;
}

// The disk.

static int is_below(const char *path) {
    const char *state = getenv("STORM_STATE");
    return path && state && strncmp(path, state, strlen(state)) == 0;
}

static int is_refused(int fd) {
    char link[64], path[4096];
    if (!now()->read_only) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int is_refused_path(const char *path) { return now()->read_only && is_below(path); }
static int mode(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0; }

ssize_t write(int fd, const void *b, size_t n) { if (is_refused(fd)) FAIL; return REAL(write)(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { if (is_refused(fd)) FAIL; return REAL(pwrite)(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { if (is_refused(fd)) FAIL; return REAL(pwrite64)(fd, b, n, o); }
int ftruncate(int fd, off_t n) { if (is_refused(fd)) FAIL; return REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { if (is_refused(fd)) FAIL; return REAL(ftruncate64)(fd, n); }
int fallocate(int fd, int m, off_t o, off_t n) { if (is_refused(fd)) FAIL; return REAL(fallocate)(fd, m, o, n); }
int unlink(const char *p) { if (is_refused_path(p)) FAIL; return REAL(unlink)(p); }
int rename(const char *p, const char *q) { if (is_refused_path(p) || is_refused_path(q)) FAIL; return REAL(rename)(p, q); }

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int permissions = mode(flags, list);
    va_end(list);
    if ((flags & O_ACCMODE) != O_RDONLY && is_refused_path(path)) FAIL;
    return REAL(open)(path, flags, permissions);
}

int open64(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int permissions = mode(flags, list);
    va_end(list);
    if ((flags & O_ACCMODE) != O_RDONLY && is_refused_path(path)) FAIL;
    return REAL(open64)(path, flags, permissions);
}
