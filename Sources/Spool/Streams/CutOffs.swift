internal import EventLoops

/// Bytes of an append file beyond the read position that were seen before the file was truncated or
/// disappeared. A copy made by rotation may have these bytes, or the file may have another name by now.
struct CutOff: Held {
    var path: FileName
    /// The file that is gone, which may turn up under another name; nil if the file was truncated.
    var gone: FileID?
    /// The stream of the file and of its copies.
    var stream: Stream
    /// Fingerprint of the file's content; empty if nothing was read, so that no copy can be recognised by it.
    var fingerprint: Fingerprint
    /// Offset from which nothing was read, neither in the file nor in a copy.
    var begin: Int64
    /// Length of the file before it was truncated or gone.
    var end: Int64
    /// Time at which the loss was noticed.
    var at: BootInstant
    /// Whether the file has gone while no agent ran. It may have had further bytes, of which nobody knows.
    var wasStopped = false

    var holder: Holder { stream.holder }
}

/// Unread bytes of files that were truncated or are gone. They are counted as given up (lost) once no copy
/// with them and no other name of the file has turned up for `patience`.
struct CutOffs {
    /// A rotated file or archive that turned up recently. Bytes of a file that is found truncated or gone
    /// next may be in it: copy and loss are noticed in either order.
    private struct Whole: Held {
        var streams: [Stream]
        /// Bytes that are read of it.
        var length: Int64
        /// Whether the file is read from its beginning, unlike a recognised copy.
        var isNew: Bool
        var at: BootInstant

        var holder: Holder { streams[0].holder }
    }

    /// The wait for a copy, in multiples of the settle time, because a copy is only compared once it has
    /// settled.
    private static let settleTimes = 30
    /// Most entries that wait; beyond them the holder with the most gives up its oldest at once.
    private static let most = 1024

    /// Entries that wait for a copy, oldest first.
    private var waiting: [CutOff] = []
    /// Bytes that were unread at the last stop, of files that this process has not found yet. Empty once the
    /// first listing has ended.
    private var beforeStart: [FileID: CutOff]
    /// Recent copies and archives that no entry has used.
    private var wholes: [Whole] = []
    /// Entries that were given up and not yet reported.
    private var givenUp: [CutOff] = []
    /// Time at which the agenda calls `giveUpOld`; nil if that is not planned.
    private var planned: BootInstant?
    /// How long a copy, or a new name of the file, is waited for.
    private let patience: Duration

    /// Count of entries that wait for a copy, for tests.
    var count: Int { waiting.count }

    /// - Parameter beforeStart: bytes that were unread at the last stop; their files may all be there.
    init(_ settleTime: Duration, beforeStart: [FileID: CutOff] = [:]) {
        patience = settleTime * CutOffs.settleTimes
        self.beforeStart = beforeStart
    }

    /// Takes the entries that were given up, to count and log each of them once.
    mutating func takeGivenUp() -> [CutOff] {
        defer { givenUp = [] }
        return givenUp
    }

    /// The time at which the caller must call `giveUpOld`; nil if that is planned already or nothing waits.
    mutating func plan(_ now: BootInstant) -> BootInstant? {
        guard planned == nil, let oldest = waiting.first else { return nil }
        let due = oldest.at + patience
        planned = due > now ? due : now + patience
        return planned
    }

    /// Adds bytes that were lost from a file, unless a copy with them is being read already.
    mutating func add(_ cut: CutOff) {
        var cut = cut
        // The copy, or the file under another name, may have been found before the loss was noticed.
        if cut.fingerprint.length == 0, cut.gone == nil {
            for whole in wholes where whole.isNew && whole.streams.contains(cut.stream) {
                cut.begin = max(cut.begin, whole.length)
            }
        } else if cut.fingerprint.length == 0,
            let index = wholes.firstIndex(where: { $0.length >= cut.end && $0.streams.contains(cut.stream) })
        {
            wholes.remove(at: index)
            return
        }
        guard cut.begin < cut.end else { return }
        waiting.append(cut)
        givenUp += waiting.makeRoom(for: CutOffs.most)
    }

    /// A file that was gone was found under a name; it is read on from its checkpoint.
    mutating func found(_ id: FileID) {
        if !waiting.isEmpty {
            waiting.removeAll { $0.gone == id }
        }
        if !beforeStart.isEmpty {
            beforeStart[id] = nil
        }
    }

    /// A file is missing. If it had unread bytes at the last stop, they are waited for from now on.
    ///
    /// - Parameter isAway: whether its directory is gone or cannot be read, so that nothing is known of the
    ///   file.
    mutating func missed(_ id: FileID, isAway: Bool, at now: BootInstant) {
        guard !beforeStart.isEmpty, var cut = beforeStart.removeValue(forKey: id), !isAway else { return }
        cut.at = now
        waiting.append(cut)
        givenUp += waiting.makeRoom(for: CutOffs.most)
    }

    /// The bytes of a file that was not found and were unread at the last stop; nil if there were none, or
    /// they were read elsewhere.
    func unreadBeforeStart(_ id: FileID) -> CutOff? { beforeStart[id] }

    /// A copy or an archive was recognised by its beginning, and is read up to this length.
    mutating func recognised(
        _ fingerprint: Fingerprint, upTo length: Int64, of streams: [Stream], at now: BootInstant
    ) {
        claim(upTo: length) { streams.contains($0.stream) && $0.fingerprint == fingerprint }
        turnedUp(Whole(streams: streams, length: length, isNew: false, at: now))
    }

    /// A file with a rotated name, or an archive, counts as new and is read to its end. It may be a copy of a
    /// file of which nothing had been read.
    mutating func readWhole(_ length: Int64, of streams: [Stream], at now: BootInstant) {
        claim(upTo: length) { streams.contains($0.stream) && $0.fingerprint.length == 0 && $0.gone == nil }
        turnedUp(Whole(streams: streams, length: length, isNew: true, at: now))
    }

    /// Accounts for one file that is gone and of which nothing had been read. If no such file waits, the copy
    /// is noted for a file that is found gone next.
    private mutating func turnedUp(_ whole: Whole) {
        let isIts = { (cut: CutOff) in
            cut.gone != nil && cut.fingerprint.length == 0 && cut.end <= whole.length
                && whole.streams.contains(cut.stream)
        }
        if let index = waiting.firstIndex(where: isIts) {
            waiting.remove(at: index)
        } else {
            let window = patience
            wholes.removeAll { whole.at - $0.at > window }
            wholes.append(whole)
            _ = wholes.makeRoom(for: CutOffs.most)
        }
    }

    /// Marks the bytes of matching entries up to a length as read, and drops entries without further bytes.
    private mutating func claim(upTo length: Int64, where isIts: (CutOff) -> Bool) {
        for (id, cut) in beforeStart where isIts(cut) {
            beforeStart[id] = length < cut.end ? cut : nil
            beforeStart[id]?.begin = max(cut.begin, length)
        }
        guard !waiting.isEmpty else { return }
        for index in waiting.indices where isIts(waiting[index]) {
            waiting[index].begin = max(waiting[index].begin, length)
        }
        waiting.removeAll { $0.begin >= $0.end }
    }

    /// Gives up entries whose wait is over. Entries of streams with copies that were not compared yet wait
    /// longer, as all do while reading is held back, because copies are not compared then.
    mutating func giveUpOld(_ now: BootInstant, isHeldBack: Bool, suspected: Set<Stream>) {
        planned = nil
        guard !isHeldBack else { return }
        let window = patience
        let isOver = { (cut: CutOff) in now - cut.at >= window && !suspected.contains(cut.stream) }
        givenUp += waiting.filter(isOver)
        waiting.removeAll(where: isOver)
    }
}
