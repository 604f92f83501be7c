internal import EventLoops

/// An append file and its read position. Used on the reader's loop only.
///
/// A file's facts are values by what they are about: where the file is (`Place`), what was read of it
/// (`Progress`), what was seen of it last (`Look`). Their fields are read as fields of the file.
///
/// A spool may hold a million files that are not written to. So the fields that only matter while something
/// happens are in a separate object, `Activity`, which a file at rest does not have (`releaseActivity`).
@dynamicMemberLookup
final class AppendFile {
    let id: FileID
    private var location: Location
    private var progress: Progress
    /// The fields of `Activity`; nil while the file is at rest.
    private var box: ActivityBox?
    // The small fields come last and together, which saves 16 bytes a file.
    private var look: Look

    /// Open while the file is being read. Once the file has lost its name it must stay open, because it could
    /// not be opened again.
    var descriptor: Descriptor?
    private(set) var stage = Stage.reading
    /// Whether the file has something to read and waits for its turn, or is parked. Otherwise it would be
    /// queued twice.
    var isReady = false
    /// Whether the file is in the open pass, so that the next commit writes its checkpoint.
    var isDirty = false
    /// Whether the file is a copy of which every byte had been read elsewhere.
    var isCopy = false
    /// Whether `Streams.unread` has the file: it has, or had at its last turn, bytes that are not in the
    /// queue.
    var isUnread = false

    /// Where the file is, under which name, and whose it is.
    struct Location {
        var directory: SpoolDirectory
        /// The name under which the file was last seen.
        var name: FileName
        /// The name before rotation changed it, as far as is known.
        var origin: FileName
        var naming = Naming.written
        var owner: UInt32
    }

    /// What was read of the file.
    struct Progress {
        /// The read position: the sink has taken all bytes before it.
        var taken = Mark.start
        /// Counts how often the read position moved backwards. A commit started under an older count must not
        /// advance `committed`.
        var setbacks: UInt32 = 0
        /// The offset before which all bytes are durable in the queue.
        var committed: Int64 = 0
        /// Fingerprint, marks and other facts that are stored, to recognise the file and its copies later.
        var trace = FileTrace()
    }

    /// What was seen of the file last.
    struct Look {
        /// Content length at the last stat, not counting trailing zeros.
        fileprivate(set) var size: Int64
        /// Modification time (st_mtim) at the last stat.
        var modified = Timestamp(nanoseconds: 0)
        var end = End.open
        /// Whether a writer had closed the file before the last change; passed on with the next lines
        /// (`SpoolSource.wasClosed`).
        var wasClosed = false
    }

    enum Naming {
        /// The file has the name under which it is written.
        case written
        /// The file was renamed, or was found under a name that rotation gives.
        case rotated
        /// No known name leads to the file.
        case none
    }

    /// The stage of the file's life (the picture is in `Streams+Invariants`).
    enum Stage {
        /// The file may be a copy made by rotation of a file that was read. It is not read before that is
        /// known.
        case suspect
        case reading
        /// The file is shorter than the read position, and may be restored. It is not read for a moment.
        case cut
        /// The whole file is queued, and is about to be removed.
        case leaving
    }

    /// The state of the file's end.
    enum End {
        /// A process may be writing to the file.
        case open
        /// A writer has closed the file since its last change.
        case closed
        /// The last line counts as complete although it has no LF.
        case sealed
    }

    init(
        _ id: FileID, in directory: SpoolDirectory, name: FileName, owner: UInt32, size: Int64,
        now: BootInstant
    ) {
        self.id = id
        location = Location(directory: directory, name: name, origin: name.claimed ?? name, owner: owner)
        progress = Progress()
        look = Look(size: size)
        box = ActivityBox(Activity(lastChange: now))
    }

    var path: FileName { location.directory.path(of: location.name.claimed ?? location.name) }

    /// File length at the last stat, including trailing zeros.
    var length: Int64 { look.size + (self.padding?.length ?? 0) }

    var hasName: Bool { location.naming != .none }
    /// Whether the file no longer has the name that it was written under.
    var isRotated: Bool { location.naming != .written }
    var isSealed: Bool { look.end == .sealed }
    var isSuspect: Bool { stage == .suspect }

    /// Notes the length from a stat. If zeros at the end are known, only reading can tell whether zeros or
    /// content made the file longer, so only the padding grows.
    func see(length: Int64) {
        if length > look.size, self.padding != nil {
            self.padding?.length = length - look.size
            return
        }
        self.padding = nil
        if look.size == 0, length > 0, progress.taken.offset == 0, stage == .reading {
            self.beganLate = true
        }
        if length < look.size, self.reached > 0 || look.size > progress.taken.offset {
            self.cutTo = self.reached > 0 ? min(self.cutTo, length) : length
            self.reached = max(self.reached, look.size)
        }
        look.size = length
    }

    /// Notes where the content ends; the bytes behind it are zeros as far as they were read.
    func endContent(at end: Int64) {
        let length = self.length
        look.size = end
        if length == end {
            self.padding = nil
        } else {
            self.padding = self.padding ?? Padding()
            self.padding?.length = length - end
        }
    }

    /// Whether the end still has to be sealed: it has bytes that were not taken, or zeros that may still be
    /// filled.
    var isUnsealed: Bool { !isSealed && (hasUnread || self.padding != nil) }

    var holder: Holder { location.directory.holder(location.owner) }

    var streams: [Stream] { Stream.of(holder, location.origin, location.name) }

    /// The trace that is stored: with the owner if users share the directory, and with the original name if
    /// the path does not show it.
    var keptTrace: FileTrace {
        var kept = progress.trace
        kept.owner = location.directory.isShared ? location.owner : nil
        let stem = location.origin.stem
        kept.origin = stem == (location.name.claimed ?? location.name).stem ? nil : stem
        return kept
    }

    /// Whether the sink has not taken all bytes.
    var hasUnread: Bool { progress.taken.offset < look.size }

    /// Length of the file if it has bytes that are not taken and that it does not share with another file;
    /// else nil.
    var unreadEnd: Int64? {
        hasUnread && stage == .reading && !isCopy && self.historyEnd == 0 ? look.size : nil
    }

    /// Whether all but the beginning of a last line is in the queue, and nothing can be read now.
    var endsInLine: Bool {
        hasUnread && !isReady && stage == .reading && progress.committed == progress.taken.offset
    }

    /// Count of bytes that are in the file and not durable in the queue.
    var unread: Int64 { max(0, look.size - progress.committed) }
}

extension AppendFile: Hashable {
    static func == (left: AppendFile, right: AppendFile) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension AppendFile {
    /// Zeros at the end of a file that a program has made longer than its content (fallocate(2), mmap(2)).
    struct Padding: Equatable {
        var length: Int64 = 0
        /// The range that was found to hold nothing but zeros.
        var known: Range<Int64> = 0..<0
        /// Modification time of the file when `known` was read.
        var modified = Timestamp(nanoseconds: 0)
        /// Content behind zeros, and the time since when it was seen. The zeros may still be filled.
        var gap: Gap?
        /// Whether a further look at the zeros is on the agenda.
        var isLookPlanned = false

        struct Gap: Equatable {
            var end: Int64
            var since: BootInstant
        }
    }

    /// The checksums of a changed file, computed block by block over several turns.
    struct Proof: Equatable {
        /// Length of the file when the computation began.
        var size: Int64
        /// Offset up to which the file was read.
        var reached: Int64 = 0
        /// CRC-32C up to `reached`.
        var sum = UInt32.max
        /// Results by offset.
        var sums: [Int64: UInt32] = [:]
    }

    /// The fields that matter only while something happens to a file.
    struct Activity {
        /// Zeros at the end of the file; nil if it does not end with zeros.
        var padding: Padding?
        /// Count of uses (`OpenFiles.uses`) at the last use of the descriptor.
        var lastUse: UInt64 = 0
        /// Count of bytes after `taken` that are known to contain no line feed; they need not be searched
        /// again.
        var scanned: Int64 = 0
        /// Whether lines of text at the end wait for more lines of their record.
        var holdsText = false
        /// The encoding of the content; asked for again once the file has been at rest.
        var script = FileScript.unknown
        /// Whether the file got its first bytes after it was judged to be no copy while empty.
        var beganLate = false
        /// Length before a truncation that cut unread bytes; 0 if there was none.
        var reached: Int64 = 0
        /// Shortest length that was seen after that truncation.
        var cutTo: Int64 = 0
        /// Checksums that are being computed to find the read position again; nil if none are.
        var proof: Proof?
        /// Length of the content that existed when the file's pattern was seen for the first time, if it is
        /// still to be skipped; else 0.
        var historyEnd: Int64 = 0
        /// For a suspect: the offset up to which a possible original has the same content; nil while the
        /// suspect's content was not compared with any.
        var sharedTo: Int64?
        /// Time at which the last change was seen.
        var lastChange = BootInstant(nanoseconds: 0)
        /// Time at which the file entered a stage other than `reading`.
        var stageSince = BootInstant(nanoseconds: 0)
        /// Time of the next check; nil if no check is on the agenda.
        var checkAt: BootInstant?
        /// Time at which a claimed file is removed.
        var leavesAt = BootInstant(nanoseconds: 0)
        /// The number of the file's own watch; nil if it has none.
        var watch: Int32?

        static let none = Activity()
    }

    /// A box for the fields, so that an idle file costs only a pointer.
    private final class ActivityBox {
        var activity: Activity
        init(_ activity: Activity) { self.activity = activity }
    }

    // MARK: The fields of the values above

    @inline(__always)
    subscript<Value>(dynamicMember field: WritableKeyPath<Location, Value>) -> Value {
        get { location[keyPath: field] }
        _modify { yield &location[keyPath: field] }
    }

    @inline(__always)
    subscript<Value>(dynamicMember field: WritableKeyPath<Progress, Value>) -> Value {
        get { progress[keyPath: field] }
        _modify { yield &progress[keyPath: field] }
    }

    @inline(__always)
    subscript<Value>(dynamicMember field: WritableKeyPath<Look, Value>) -> Value {
        get { look[keyPath: field] }
        _modify { yield &look[keyPath: field] }
    }

    /// The length is only changed by `see` and `endContent`.
    @inline(__always)
    subscript<Value>(dynamicMember field: KeyPath<Look, Value>) -> Value { look[keyPath: field] }

    /// Makes the fields of `Activity` available as fields of the file. Setting a field to its default does
    /// not create the box.
    @inline(__always)
    subscript<Value: Equatable>(dynamicMember field: WritableKeyPath<Activity, Value>) -> Value {
        get { box?.activity[keyPath: field] ?? Activity.none[keyPath: field] }
        set {
            if let box {
                box.activity[keyPath: field] = newValue
            } else if newValue != Activity.none[keyPath: field] {
                var activity = Activity.none
                activity[keyPath: field] = newValue
                box = ActivityBox(activity)
            }
        }
    }

    /// Whether the file is idle: nothing happens to it, and no step is planned for it.
    var isResting: Bool { box == nil }

    /// Frees the fields of `Activity` if the file is at rest, or waits for its turn and nothing else is known
    /// of it: a start finds a million files before it has read the first of them.
    func releaseActivity() {
        guard let activity = box?.activity, descriptor == nil, activity.checkAt == nil,
            activity.scanned == 0, !activity.holdsText, activity.historyEnd == 0, activity.reached == 0,
            activity.padding == nil, isUnread ? onlyWaits(activity) : !isReady,
            !isDirty, stage == .reading, hasName
        else { return }
        box = nil
    }

    /// Whether the file waits for its turn, and reading needs to know nothing else of it. A copy that was
    /// empty when it was judged must be judged again, a comparison that has begun goes on, and a watch must
    /// end.
    private func onlyWaits(_ activity: Activity) -> Bool {
        isReady && hasUnread && !activity.beganLate && activity.proof == nil && activity.watch == nil
    }

    /// Something happens to the file now. If it was at rest, its waits are counted from now.
    func wake(_ now: BootInstant) {
        if box == nil {
            box = ActivityBox(Activity(lastChange: now))
        }
    }

    /// Enters another stage.
    func enter(_ stage: Stage, at now: BootInstant) {
        self.stage = stage
        if stage != .reading {
            self.stageSince = now
        }
    }
}
