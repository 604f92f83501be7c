#ifndef CCRASHSPOOL_H
#define CCRASHSPOOL_H

#include <stdint.h>

/* A spool directory that forgets what was not synced, on one timeline with the disk of ccrashdisk.h, for tests only.
 *
 * The program's own renameat2, unlinkat and fsync are taken over for what lies below one directory: a name that was made,
 * changed or removed may be as before after a power cut, until fsync of its directory. Files are moved aside instead of
 * removed, so that they come back as the very same files, handle and all. Content is the test's to cut. */

/* Begins: after `freeze_at` operations (these, and those of the disk) the machine stands still: nothing changes the
 * directory any more, each call fails with EIO. `aside` lies on the same file system, outside of the directory. */
void crashspool_begin(const char *directory, const char *aside, uint64_t freeze_at);

/* Makes the machine stand still now, if it does not yet. */
void crashspool_freeze(void);

/* Whether it stands still. */
int crashspool_frozen(void);

/* How many operations the disk had done when the machine came to stand still. */
uint64_t crashspool_place(void);

/* Says that a file was made under a path; its name is not durable yet. */
void crashspool_made(const char *path);

/* renameat2 of absolute paths, without replacing. */
int crashspool_rename(const char *from, const char *to);

/* Undoes some of what was not synced, chosen by `seed`; nothing with `process_only`. Ends the simulation.
 * Returns how many operations were undone. */
uint64_t crashspool_cut(uint64_t seed, int process_only);

/* To be called by the disk after each of its operations. */
void crashspool_tick(void);

#endif
