#include "cbuild.h"

#ifndef SPOOLSHIP_COMMIT
#define SPOOLSHIP_COMMIT "unknown"
#endif

const char *cbuild_commit(void) { return SPOOLSHIP_COMMIT; }
