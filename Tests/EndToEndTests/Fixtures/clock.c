// To be preloaded: the time of day is CLOCK_AHEAD seconds ahead, and the kernel says that it is synchronised, but
// with CLOCK_UNSYNCHRONISED that it is not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *found) {
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, found);
    const char *ahead = getenv("CLOCK_AHEAD");
    if (result == 0 && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) found->tv_sec += atol(ahead);
    return result;
}

int adjtimex(struct timex *found) {
    *found = (struct timex){0};
    return getenv("CLOCK_UNSYNCHRONISED") ? TIME_ERROR : TIME_OK;
}
