#ifndef CSYSCALLS_H
#define CSYSCALLS_H

/* System calls that tests make and Swift cannot. */

/* Gives up all capabilities of the calling thread, for good. 0, or the error number. */
int csyscalls_drop_capabilities(void);

/* Exchanges two files, both of which exist. 0, or the error number. */
int csyscalls_exchange(const char *one, const char *other);

#endif
