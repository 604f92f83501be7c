#define _GNU_SOURCE
#include "clinux_process.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

int clinux_pipe(int ends[2]) {
    return pipe2(ends, O_CLOEXEC);
}

int clinux_pidfd_open(pid_t process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

pid_t clinux_spawn(const char *const *arguments, const char *const *environment, int input, int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0 && (error = posix_spawnattr_init(&attributes)) != 0) posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        errno = error;
        return -1;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    pid_t process = -1;
    if ((error = posix_spawn_file_actions_adddup2(&actions, input, 0)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&actions, output, 1)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&actions, errors, 2)) == 0 &&
        // Whatever a library forgot to mark: a function inherits none of it.
        (error = posix_spawn_file_actions_addclosefrom_np(&actions, 3)) == 0 &&
        (error = posix_spawn_file_actions_addchdir_np(&actions, "/")) == 0 &&
        (error = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
        (error = posix_spawnattr_setsigdefault(&attributes, &all)) == 0 &&
        (error = posix_spawnattr_setpgroup(&attributes, 0)) == 0 &&
        (error = posix_spawnattr_setflags(
             &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP)) == 0)
        error = posix_spawn(&process, arguments[0], &actions, &attributes, (char *const *)arguments,
                            (char *const *)environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return process;
    errno = error;
    return -1;
}

void clinux_release_memory(void) { malloc_trim(0); }

void clinux_bound_memory(void) {
    // Buffers of a batch or a chunk may have 2 MiB: mapped anew for each, their pages cost a sixth of the CPU of large batches.
    // Fails for no value that malloc knows.
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
}
