#include <sqlite3.h>

/* Syncs the WAL of a connection, through its VFS. */
static inline int csqlite_sync_wal(sqlite3 *connection) {
    sqlite3_file *wal = 0;
    int code = sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    if (code != SQLITE_OK) return code;
    if (wal == 0 || wal->pMethods == 0) return SQLITE_OK;
    return wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

/* Whether the path of a connection's file leads to another file now, or to none. */
static inline int csqlite_has_moved(sqlite3 *connection) {
    int moved = 0;
    return sqlite3_file_control(connection, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}
