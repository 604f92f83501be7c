// What rows cost, in bytes, before they are written. Three callers depend on it: a transaction takes
// only as many waiting calls as `FileBounds.transaction` allows (`QueueStore.takeWaiting`), the bounds
// of dead letters and the quarantine are kept in these units, and rows without a configured bound get
// extra room in the file (`QueueFile.payForPlaces`).

internal import Model

// What rows cost before they are written, in bytes. It bounds transactions, trims kept lines and pays
// for places.

extension QuarantineRecord {
    /// Bytes of this record that count toward `spool.quarantine_max_size`.
    var cost: Int {
        keptCost(content.count + detail.utf8.count + app.utf8.count + path.utf8.count)
    }
}

extension SpoolProgress {
    /// Bytes that the checkpoints and done records add to tables without a configured bound.
    var cost: Int {
        let places = checkpoints.reduce(0) {
            $0
                + placeCost(
                    $1.key.count + min($1.path.utf8.count, Checkpoint.longestShownPath) + $1.state.count)
        }
        return done.reduce(places) { $0 + placeCost($1.claim.count + $1.handle.count) }
    }
}

extension Commit {
    /// Bytes that the commit adds to tables without a configured bound: checkpoints, done records,
    /// memory.
    var placesCost: Int {
        memory.reduce(progress.cost) { $0 + placeCost($1.key.utf8.count + ($1.value?.count ?? 0)) }
    }

    /// Estimate of what one transaction writes for this commit, in bytes.
    ///
    /// Bad lines count up to the bound of the quarantine only: `keep` stores no more than that,
    /// whatever the commit brings. Each deleted row counts as one row, because its page is rewritten.
    func cost(quarantine: Int) -> Int {
        let frames = chunks.reduce(0) { $0 + $1.cost }
        var kept = 0
        for record in quarantined where kept < quarantine { kept += record.cost }
        let gone = progress.forgotten.count + progress.unlinked.count + requeued.count
        return frames + min(kept, quarantine) + placesCost + gone * rowCost
    }
}

extension NewChunk {
    /// Bytes of this chunk that count toward `queue.max_size`.
    var cost: Int { chunkCost(frame: frame.count, destinations: destinations.count) }
}

/// Bytes that a dead letter or a quarantined line counts toward its bound.
func keptCost(_ content: Int) -> Int { content + rowCost }

/// Bytes of a row in a table without a configured bound. A large row gets a page of 4,096 bytes on top,
/// because it leaves most of that page unused.
func placeCost(_ content: Int) -> Int { content + rowCost + (content > largePlace ? 4_096 : 0) }

/// Size in bytes above which a row is assumed to need a page of its own, with the smallest page size
/// that the queue uses (4,096). SQLite moves index cells of more than 1,002 bytes to overflow pages
/// there: https://www.sqlite.org/fileformat2.html#b_tree_pages
let largePlace = 900
