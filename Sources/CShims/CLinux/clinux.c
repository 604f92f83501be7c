#define _GNU_SOURCE
#include "clinux.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

static _Thread_local uint64_t own_id;

__attribute__((noinline)) uint64_t clinux_thread_id(void) {
    if (own_id == 0) own_id = (uint64_t)gettid();
    __asm__ volatile("" ::: "memory");
    return own_id;
}

static _Thread_local void *mark;

__attribute__((noinline)) void *_Nullable clinux_thread_mark(void *_Nullable new) {
    void *old = mark;
    mark = new;
    __asm__ volatile("" ::: "memory");
    return old;
}

__attribute__((noinline)) void *_Nullable clinux_thread_marked(void) {
    __asm__ volatile("" ::: "memory");
    return mark;
}

void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

int clinux_clock_is_synchronised(void) {
    struct timex state = {0};
    const int result = adjtimex(&state);
    if (result < 0) return -1;
    return result != TIME_ERROR && !(state.status & STA_UNSYNC);
}

int clinux_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
