/// Fails one system call of a thread, to see what a program makes of it. It takes over this process's own calls.
#ifndef CFAULTSPOOL_H
#define CFAULTSPOOL_H

#include <stdint.h>

/// From now on the calling thread's calls on files are counted, all or those of one name; the one with the number `at` (from 1)
/// fails with `error`, and with `all_after` all after it too.
void faultspool_arm(const char *_Nullable call, uint64_t at, int error, int all_after);

/// Counts no more; gives how many there were.
uint64_t faultspool_disarm(void);

/// The name of the call that failed first on the calling thread; NULL when none did.
const char *_Nullable faultspool_failed(void);

/// For the calls that others take over too: whether this one fails; errno is set.
int faultspool_fails(const char *_Nonnull call);

#endif
