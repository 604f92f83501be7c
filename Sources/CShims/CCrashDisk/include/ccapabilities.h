#ifndef CCAPABILITIES_H
#define CCAPABILITIES_H

/* Gives up all capabilities of the calling thread, for good. 0, or the error number. For tests only. */
int ccapabilities_drop(void);

#endif
