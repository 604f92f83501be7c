internal import Model

// What rows cost before they are written, in bytes. It bounds transactions, trims kept lines and pays for places.

extension QuarantineRecord {
    /// What it counts for in the bound of the quarantine.
    var cost: Int {
        keptCost(content.count + detail.utf8.count + app.utf8.count + path.utf8.count)
    }
}

extension SpoolProgress {
    /// Bytes of a checkpoint's path that are kept, which is for people.
    static let longestPath = 512

    /// What its rows add to tables that no bound of the configuration holds.
    var cost: Int {
        let places = checkpoints.reduce(0) {
            $0 + placeCost($1.key.count + min($1.path.utf8.count, SpoolProgress.longestPath) + $1.state.count)
        }
        return done.reduce(places) { $0 + placeCost($1.claim.count + $1.handle.count) }
    }
}

extension Checkpoint {
    /// The path as it is kept: both ends of one that is very long.
    var shownPath: String {
        let bytes = Array(path.utf8)
        guard bytes.count > SpoolProgress.longestPath else { return path }
        // Cut within a character it would be longer than allowed: each broken one is replaced by three bytes.
        let end = SpoolProgress.longestPath / 2 - 16
        return String(decoding: bytes.prefix(end), as: UTF8.self) + "…"
            + String(decoding: bytes.suffix(end), as: UTF8.self)
    }
}

extension Commit {
    /// What its rows add to tables that no bound of the configuration holds.
    var placesCost: Int {
        memory.reduce(progress.cost) { $0 + placeCost($1.key.utf8.count + ($1.value?.count ?? 0)) }
    }

    /// What one transaction writes for it: of bad lines no more than the bound of the quarantine, whatever it brings.
    func cost(quarantine: Int) -> Int {
        let frames = chunks.reduce(0) { $0 + $1.cost }
        var kept = 0
        for record in quarantined where kept < quarantine { kept += record.cost }
        let gone = progress.forgotten.count + progress.unlinked.count + requeued.count
        return frames + min(kept, quarantine) + placesCost + gone * rowCost
    }
}

extension NewChunk {
    /// What it counts for in the storage cap.
    var cost: Int { chunkCost(frame: frame.count, destinations: destinations.count) }
}

/// What a dead letter or a quarantined line counts for in its bound.
func keptCost(_ content: Int) -> Int { content + rowCost }

/// What a row of a table with its own keys costs: a large one leaves most of a page to itself.
func placeCost(_ content: Int) -> Int { content + rowCost + (content > largePlace ? 4_096 : 0) }

/// From this size on a row of such a table has its own page, at the least page size.
let largePlace = 900
