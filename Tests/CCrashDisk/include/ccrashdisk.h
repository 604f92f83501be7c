#ifndef CCRASHDISK_H
#define CCRASHDISK_H

#include <stdint.h>

#include "ccrashspool.h"
#include "csyscalls.h"
#include "cfaultspool.h"

/* An SQLite VFS over a disk in memory that remembers what was written and synced, so that power can be cut at any
 * operation afterwards. One disk for the process, one connection at a time, for tests only.
 *
 * What a power cut leaves: all that was synced; of the writes since then, any subset, each of them whole, in part (in
 * sectors of 512 bytes) or not at all; files that were never synced may be missing. Shared memory is in the heap. */

/* Registers the VFS under the name "crashdisk" and empties the disk. */
void crashdisk_reset(void);

/* Counts operations from here on: each write, truncation, sync and deletion is one. The disk's present content is what
 * the tape begins with. */
void crashdisk_record(void);

/* How many operations the tape has. */
uint64_t crashdisk_operations(void);

/* Makes the disk what a power cut after so many operations of the tape leaves; `seed` chooses among the possible. With
 * `process_only` all writes survive, as they do when only the process dies. Ends the recording; can be repeated. */
void crashdisk_cut(uint64_t operations, uint64_t seed, int process_only);

/* From now on each write fails with that error number (0: no more). */
void crashdisk_fail(int error_number);

#endif
