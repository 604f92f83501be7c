internal import EventLoops

/// An append file and how far it has been read. Touched by its reader only.
///
/// A spool may hold a million of them that nobody writes to: what matters only while something happens is kept apart, in
/// `Activity`, and goes with it (`rest`).
@dynamicMemberLookup
final class AppendFile {
    let id: FileID
    var directory: SpoolDirectory
    /// The name it was last seen under.
    var name: FileName

    /// The name that it was written under, as far as is known: rotation has not changed it yet.
    var origin: FileName

    /// The place before which all was taken by the sink.
    var taken: Mark
    /// How often its place went back; a commit that began before says nothing about what came after.
    var setbacks: UInt32 = 0
    /// The offset before which all is durable.
    var committed: Int64
    /// Where its content ended when it was last looked at: zeros at its end are none.
    private(set) var size: Int64
    /// When its content was changed, as its file system said when it was last looked at.
    var modified = Timestamp(nanoseconds: 0)
    /// What is kept to know the file again.
    var trace: FileTrace
    private var kept: Kept?

    /// Open while it is being read; must not be closed once it has lost its name.
    var descriptor: Descriptor?
    var owner: UInt32
    var naming = Naming.written
    private(set) var stage = Stage.reading
    var end = End.open
    /// Whether a writer had closed it before the last change: the next lines are told so.
    var wasClosed = false
    var isReady = false
    /// Whether the next commit has something to say about it.
    var isDirty = false
    /// Whether it was found to be a copy, all of which had been read elsewhere.
    var isCopy = false

    enum Naming {
        /// It has the name that it was first seen under, and rotation has not given that.
        case written
        /// It was renamed since, or was found under a name that rotation gives.
        case rotated
        /// It is no more there under any name that is known.
        case none
    }

    /// What is to become of it (the picture is in `Streams+Invariants`).
    enum Stage {
        /// It may be a copy of a file that was read, made by rotation; it is not read before that is known.
        case suspect
        case reading
        /// It is shorter than what was read of it, and may become what it was: it is not read for a moment.
        case cut
        /// All of it is queued, and it is about to be removed.
        case leaving
    }

    enum End {
        /// Somebody may be writing to it.
        case open
        /// A writer has closed it since the last change.
        case closed
        /// Its last line counts as whole although it has no LF.
        case sealed
    }

    init(
        _ id: FileID, in directory: SpoolDirectory, name: FileName, owner: UInt32, size: Int64, now: BootInstant
    ) {
        self.id = id
        self.owner = owner
        self.directory = directory
        self.name = name
        origin = name.claimed ?? name
        self.size = size
        taken = .start
        committed = 0
        trace = FileTrace()
        kept = Kept(Activity(lastChange: now))
    }

    var path: FileName { directory.path(of: name.claimed ?? name) }

    /// How long it was when it was last looked at, zeros at its end included.
    var length: Int64 { size + (self.padding?.length ?? 0) }

    var hasName: Bool { naming != .none }
    /// Whether it is not under the name any more that it was written under.
    var isRotated: Bool { naming != .written }
    var isSealed: Bool { end == .sealed }
    var isSuspect: Bool { stage == .suspect }

    /// Its file system says how long it is. Whether zeros or content made it longer only reading tells.
    func see(length: Int64) {
        if length > size, self.padding != nil {
            self.padding?.length = length - size
            return
        }
        self.padding = nil
        if length < size, self.reached > 0 || size > taken.offset {
            self.cutTo = self.reached > 0 ? min(self.cutTo, length) : length
            self.reached = max(self.reached, size)
        }
        size = length
    }

    /// Its content was seen to end there; what follows are zeros, as far as they were looked at.
    func endContent(at end: Int64) {
        let length = self.length
        size = end
        if length == end {
            self.padding = nil
        } else {
            self.padding = self.padding ?? Padding()
            self.padding?.length = length - end
        }
    }

    /// Whether it is to be sealed: its end was not taken, or it is to be made sure that it ends with zeros.
    var isUnsealed: Bool { !isSealed && (hasUnread || self.padding != nil) }

    var holder: Holder { directory.holder(owner) }

    var streams: [Stream] { Stream.of(holder, origin, name) }

    /// What is kept of it, with whose it is.
    var keptTrace: FileTrace {
        var kept = trace
        kept.owner = directory.isShared ? owner : nil
        let stem = origin.stem
        kept.origin = stem == (name.claimed ?? name).stem ? nil : stem
        return kept
    }

    /// Whether there are bytes that were not taken.
    var hasUnread: Bool { taken.offset < size }

    /// Bytes that are in the file and not in the queue.
    var unread: Int64 { max(0, size - committed) }
}

extension AppendFile: Hashable {
    static func == (left: AppendFile, right: AppendFile) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension AppendFile {
    /// The zeros at the end of a file that was made longer than what is written to it yet.
    struct Padding: Equatable {
        var length: Int64 = 0
        /// Where they were looked through.
        var known: Range<Int64> = 0..<0
        /// When the file had changed last by then.
        var modified = Timestamp(nanoseconds: 0)
        /// How far content reaches that was seen to follow zeros, and since when: they may still be filled.
        var gap: Gap?
        /// Whether it is on the agenda to look whether they are filled.
        var isLookPlanned = false

        struct Gap: Equatable {
            var end: Int64
            var since: BootInstant
        }
    }

    /// The sums of the beginnings of a file that has changed, as far as it was read for them.
    struct Proof: Equatable {
        /// How long the file was.
        var size: Int64
        var reached: Int64 = 0
        var sum = UInt32.max
        /// By the offsets at which they were asked for.
        var sums: [Int64: UInt32] = [:]
    }

    /// What is only of concern while something happens to a file.
    struct Activity {
        /// The zeros at its end; nil if there are none.
        var padding: Padding?
        /// When the descriptor was last needed, as a count of uses.
        var lastUse: UInt64 = 0
        /// How many bytes after `taken` are known to hold no line feed.
        var scanned: Int64 = 0
        /// Whether a block of text at its end waits for what may belong to it.
        var holdsText = false
        /// How far it was seen to reach, unread, before it became shorter; 0 when it did not.
        var reached: Int64 = 0
        /// How short it was seen then.
        var cutTo: Int64 = 0
        /// What is read to find its place again; nil if nothing is.
        var proof: Proof?
        /// Of a suspect: how far another file had what it may be a copy of.
        var sharedTo: Int64 = 0
        var lastChange = BootInstant(nanoseconds: 0)
        /// Since when it is what it is, if it is not read as it grows.
        var stageSince = BootInstant(nanoseconds: 0)
        /// Since when there are bytes to read; nil when there are none.
        var unreadSince: Timestamp?
        /// When it is to be checked next; nil when no check is on the agenda.
        var checkAt: BootInstant?
        var leavesAt = BootInstant(nanoseconds: 0)

        static let none = Activity()
    }

    /// A pointer, which costs a file at rest eight bytes.
    private final class Kept {
        var activity: Activity
        init(_ activity: Activity) { self.activity = activity }
    }

    /// What happens is as if it were the file's own. To note what is so already wakes nothing.
    @inline(__always)
    subscript<Value: Equatable>(dynamicMember field: WritableKeyPath<Activity, Value>) -> Value {
        get { kept?.activity[keyPath: field] ?? Activity.none[keyPath: field] }
        set {
            if let kept {
                kept.activity[keyPath: field] = newValue
            } else if newValue != Activity.none[keyPath: field] {
                var activity = Activity.none
                activity[keyPath: field] = newValue
                kept = Kept(activity)
            }
        }
    }

    /// Whether nothing has happened to it for long, and nothing is to be done about it.
    var isResting: Bool { kept == nil }

    /// Forgets what matters only while something happens, if nothing does.
    func rest() {
        guard let activity = kept?.activity, descriptor == nil, activity.unreadSince == nil, activity.checkAt == nil,
            activity.scanned == 0, !activity.holdsText, activity.reached == 0, activity.padding == nil, !isReady,
            !isDirty, stage == .reading, hasName
        else { return }
        kept = nil
    }

    /// Something happens to it now: its waits are counted from now, if it was at rest.
    func wake(_ now: BootInstant) {
        if kept == nil { kept = Kept(Activity(lastChange: now)) }
    }

    /// Something else is to become of it from now on.
    func enter(_ stage: Stage, at now: BootInstant) {
        self.stage = stage
        if stage != .reading { self.stageSince = now }
    }
}
