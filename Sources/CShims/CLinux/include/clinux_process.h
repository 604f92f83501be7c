/// What running programs needs of the kernel and Glibc's Swift module lacks.
#ifndef CLINUX_PROCESS_H
#define CLINUX_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/// A pipe whose ends are close-on-exec: reading end first. -1 and errno when there is none.
int clinux_pipe(int ends[2]);

/// A descriptor that becomes readable when the process has ended (close-on-exec); -1 and errno when there is none.
int clinux_pidfd_open(pid_t process);

/// Starts a program without a shell, as the leader of a process group of its own, in the root directory.
///
/// It has the given descriptors as standard input, output and error, and no others; no signal is blocked or ignored.
/// Returns its id, or -1 and errno: then nothing runs.
pid_t clinux_spawn(const char *const *arguments, const char *const *environment, int input, int output, int errors);

/// Gives memory that was freed back to the system, as far as whole pages of it are free.
void clinux_release_memory(void);

/// Has malloc give back each large block (1 MiB and more) as soon as it is free. By itself it raises its limits with the blocks that
/// come and keeps more and more.
void clinux_bound_memory(void);

#endif
