internal import EventLoops

/// The spool's directories.
struct SpoolTree: ~Copyable {
    /// The spool itself.
    var root: Descriptor
    /// Where files go that were read; nil: they are removed, or stay.
    var archive: Archive?
    private(set) var directories: [FileName: SpoolDirectory] = [:]
    /// How many of them an app has.
    private var counts: [String: Int] = [:]
    /// Apps of which directories were refused, because they have too many.
    var crowded: Set<String> = []
    /// How often it is still made sure that the spool's path is the directory that is open.
    var rootChecksLeft = 0

    init(root: consuming Descriptor) { self.root = root }

    mutating func add(_ directory: SpoolDirectory) {
        directories[directory.path] = directory
        if let parent = directory.parent { directories[parent]?.children[directory.path] = directory }
        counts[directory.app, default: 0] += 1
    }

    mutating func remove(_ directory: SpoolDirectory) {
        guard directories.removeValue(forKey: directory.path) != nil else { return }
        if let parent = directory.parent { directories[parent]?.children[directory.path] = nil }
        counts[directory.app, default: 1] -= 1
        if counts[directory.app] == 0 { counts[directory.app] = nil }
    }

    /// How many directories of an app are known.
    func count(of app: String) -> Int { counts[app, default: 0] }
}

/// How changes are noticed: by inotify, and by looking where there is none.
struct SpoolWatch: ~Copyable {
    var inotify: Descriptor?
    /// The directories by the number of their watch.
    var directories: [Int32: SpoolDirectory] = [:]
    /// Those that are looked through from time to time.
    var polled: [SpoolDirectory] = []
    /// Why all of them are.
    var pollReason: String?
    /// Files renamed in the watch's last events, by the kernel's cookie.
    var moved: [UInt32: AppendFile] = [:]
    /// Renames, in the watch's last events, of append files that had gone before they were looked at; and their old names.
    var movedUnseen: [UInt32: FileName] = [:]
    var attention = Attention.listening

    /// When the kernel's changes are read.
    enum Attention {
        /// They wake the loop.
        case listening
        /// They woke the loop, and were read.
        case heard
        /// They wake nobody, and are read from then on: lines that drip are gathered anyway.
        case resting(until: BootInstant)
    }
}
