#include <sqlite3.h>

/* Syncs the WAL of a connection, through its VFS. */
static inline int csqlite_sync_wal(sqlite3 *connection) {
    sqlite3_file *wal = 0;
    int code = sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    if (code != SQLITE_OK) return code;
    if (wal == 0 || wal->pMethods == 0) return SQLITE_OK;
    return wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}
