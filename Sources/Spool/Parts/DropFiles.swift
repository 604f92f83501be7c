internal import Model

/// The drop files on their way: from a name that was seen, over reading, to removal.
struct DropFiles {
    /// Those that wait to be claimed and read, by app; in the drop box by owner.
    var waiting = FairQueue<PendingDrop>()
    /// Drop boxes where owners have more files than may wait; listed again when few of an owner's are left.
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
    var staying: [FileID: (directory: SpoolDirectory, name: FileName)] = [:]
    /// Those that are in the queue and whose removal was not durable when the reader started.
    var doneBefore: [FileID: [DoneRecord]] = [:]
    /// Those that were unlinked, which is not durable yet.
    var removal = Removal()

    var areAllRead: Bool { waiting.isEmpty && asides.isEmpty && reading == nil }

    var countUnread: Int { waiting.count + asides.count + cut.count + (reading == nil ? 0 : 1) }

    /// Nothing that was read since the last commit counts.
    mutating func giveUpReading() {
        reading = nil
        asides = FairQueue()
    }
}
