/// What the build is told from outside. A target of its own: another commit compiles one line anew and links, no more.
#ifndef CBUILD_H
#define CBUILD_H

/// The commit, from SPOOLSHIP_COMMIT in the build's environment; "unknown" without it.
const char *cbuild_commit(void);

#endif
