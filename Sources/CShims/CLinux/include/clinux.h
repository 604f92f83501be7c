/// What Linux has and Glibc's Swift module lacks: epoll, eventfd, timerfd, signalfd, inotify, statfs,
/// extended attributes, and a thread's own id.
#ifndef CLINUX_H
#define CLINUX_H

#include <stdint.h>
#include "clinux_files.h"
#include "clinux_process.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>

/// The kernel's id of the calling thread.
///
/// A function of its own because glibc declares `pthread_self` const: the optimiser keeps its value across a
/// suspension, and a task that resumed on another thread then took itself for the first one.
uint64_t clinux_thread_id(void);

/// Marks the calling thread, and gives the mark that it had: which loop's thread it is.
void *_Nullable clinux_thread_mark(void *_Nullable mark);

/// The calling thread's mark; nil for none.
void *_Nullable clinux_thread_marked(void);

/// Names the calling thread, for `ps -T` and debuggers; the kernel keeps the first 15 bytes.
void clinux_name_thread(const char *_Nonnull name);

/// Whether the kernel takes the time of day for synchronised (adjtimex(2)): 1, or 0; -1 when it may not be asked.
int clinux_clock_is_synchronised(void);

/// Accepts a connection; not inherited by programs that are started, and never blocking. -1 with errno set when there is none.
int clinux_accept(int listener);

#endif
