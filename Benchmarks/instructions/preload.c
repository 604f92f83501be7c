// Preloaded by scripts/instructions, for what valgrind does to the agent.
//
// * Valgrind 3.19 does not know openat2, and without it the agent opens nothing of the spool. Here it is openat. What it
//   forbids besides (links, ways out of the spool) is for the tests, not for this run.
// * Under valgrind the agent runs some fifty times slower, its timers do not: it would spend its instructions on what
//   happens each 50 ms. So its clocks for waits run as slowly.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

enum { slower = 50, second = 1000000000 };

static int64_t start;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_settime)(int, int, const struct itimerspec *, struct itimerspec *);
static long (*real_syscall)(long, ...);

static int64_t nanoseconds(struct timespec time) { return time.tv_sec * (int64_t)second + time.tv_nsec; }
static struct timespec timespec(int64_t time) { return (struct timespec){time / second, time % second}; }

// Before the first use, which is in other libraries' constructors.
static void begin(void) {
    if (real_syscall) return;
    real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real_settime = (int (*)(int, int, const struct itimerspec *, struct itimerspec *))dlsym(RTLD_NEXT, "timerfd_settime");
    real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    struct timespec now;
    if (!real_gettime || !real_settime || !real_syscall || real_gettime(CLOCK_BOOTTIME, &now)) abort();
    start = nanoseconds(now);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    begin();
    const int result = real_gettime(clock, time);
    // Both count from the machine's start; they differ by the time that it slept.
    if (result == 0 && (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC))
        *time = timespec(start + (nanoseconds(*time) - start) / slower);
    return result;
}

int timerfd_settime(int timer, int flags, const struct itimerspec *new, struct itimerspec *old) {
    begin();
    struct itimerspec real = *new;
    const int64_t wanted = nanoseconds(real.it_value);
    // A timer that is cancelled when the clock is set follows the time of day, not waiting: it stays as it is.
    if (wanted > start && (flags & TFD_TIMER_ABSTIME) && !(flags & TFD_TIMER_CANCEL_ON_SET)
        && wanted - start < INT64_MAX / slower - start)
        real.it_value = timespec(start + (wanted - start) * slower);
    return real_settime(timer, flags, &real, old);
}

long syscall(long number, ...) {
    begin();
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2) {
        const struct open_how *how = (const struct open_how *)a[2];
        return openat((int)a[0], (const char *)a[1], (int)how->flags, (mode_t)how->mode);
    }
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
