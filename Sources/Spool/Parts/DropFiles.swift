internal import Model

/// The drop files on their way: from a name that was seen, over reading, to removal.
struct DropFiles {
    /// Those that wait to be claimed and read, by app; in the drop box by owner.
    var waiting = FairQueue<PendingDrop>()
    /// Where apps and owners have more files than may wait, or stay; listed again when few are left.
    var crowded: [String: [FileName: SpoolDirectory]] = [:]
    var reading: DropReading?
    /// Those that are read in part and go on when it is their turn.
    var asides = FairQueue<DropReading>()
    var isAsideNext = false
    /// Those that wait for the sink's word, and those that have it.
    var parked: [FileID: DropReading] = [:]
    /// Those that ended too early and are tried once more.
    var cut: [FileID: DropReading] = [:]
    /// Those under names of ours: they are being read, or wait for their commit or removal.
    var inHand: Set<FileID> = []
    /// Those that are in the queue and could not be removed: tried again when they are found again.
    var stuck: [FileID: [DoneRecord]] = [:]
    /// Those that stay because of their bad lines.
    private(set) var staying: [FileID: (directory: SpoolDirectory, name: FileName, share: String)] = [:]
    private var stayingPaths: [FileName: FileID] = [:]
    /// How many of them each app or owner has.
    private var stayingCounts: [String: Int] = [:]
    /// Those that are in the queue and whose removal was not durable when the reader started.
    var doneBefore: [FileID: [DoneRecord]] = [:]
    /// Those that were unlinked, which is not durable yet.
    var removal = Removal()

    var areAllRead: Bool { waiting.isEmpty && asides.isEmpty && reading == nil }

    var countUnread: Int { waiting.count + asides.count + cut.count + (reading == nil ? 0 : 1) }

    /// Whether an app or owner may have another that stays, beside an equal part of `most` for each; `divisor`: 2 asks for half of that.
    func mayStay(_ share: String, of most: Int, dividedBy divisor: Int = 1) -> Bool {
        stayingCounts[share, default: 0] < max(4, most / (stayingCounts.count + 1)) / divisor
    }

    /// Whether it is new that a file stays.
    mutating func stay(_ id: FileID, as name: FileName, in directory: SpoolDirectory, of share: String) -> Bool {
        let isNew = release(id) == nil
        staying[id] = (directory, name, share)
        stayingPaths[directory.path(of: name)] = id
        stayingCounts[share, default: 0] += 1
        return isNew
    }

    /// Which file that stays is under a path.
    func stays(at path: FileName) -> FileID? { stayingPaths.isEmpty ? nil : stayingPaths[path] }

    /// A file got another name, which may be none that is looked at: what is deleted under the old one is another file.
    mutating func movedAway(from path: FileName) { stayingPaths[path] = nil }

    /// A file does not have to stay any more, or is gone; the app or owner whose it was, nil if it did not stay.
    @discardableResult
    mutating func release(_ id: FileID) -> String? {
        guard let (directory, name, share) = staying.removeValue(forKey: id) else { return nil }
        let path = directory.path(of: name)
        if stayingPaths[path] == id { stayingPaths[path] = nil }
        stayingCounts[share, default: 0] -= 1
        if stayingCounts[share] == 0 { stayingCounts[share] = nil }
        return share
    }

    /// Nothing that was read since the last commit counts.
    mutating func giveUpReading() {
        reading = nil
        asides = FairQueue()
    }
}
