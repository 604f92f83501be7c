internal import EventLoops

struct SpoolTree: ~Copyable {
    var root: Descriptor
    /// Whether other machines or programs may change it without the kernel's noticing.
    var isRemote = false
    /// Where files go that were read; nil: they are removed, or stay.
    var archive: Archive?
    private(set) var directories: [FileName: SpoolDirectory] = [:]
    private var counts: [String: Int] = [:]
    /// Apps of which directories were refused, because they have too many.
    var crowded: Set<String> = []
    /// How often it is still made sure that the spool's path is the directory that is open.
    var rootChecksLeft = 0
    /// Whether a file system has been asked where its path leads, and has not answered yet.
    var isAwaited = false

    init(root: consuming Descriptor) { self.root = root }

    mutating func add(_ directory: SpoolDirectory) {
        directories[directory.path] = directory
        if directory.depth > 0 { directories[directory.path.parent]?.children[directory.path] = directory }
        counts[directory.app, default: 0] += 1
    }

    mutating func remove(_ directory: SpoolDirectory) {
        guard directories.removeValue(forKey: directory.path) != nil else { return }
        directories[directory.path.parent]?.children[directory.path] = nil
        counts[directory.app, default: 1] -= 1
        if counts[directory.app] == 0 { counts[directory.app] = nil }
    }

    func count(of app: String) -> Int { counts[app, default: 0] }
}

/// How changes are noticed: by inotify, and by looking where there is none.
struct SpoolWatch: ~Copyable {
    var inotify: Descriptor?
    /// The directories by the number of their watch.
    var directories: [Int32: SpoolDirectory] = [:]
    /// Those that are looked through from time to time.
    var polled: [SpoolDirectory] = []
    var pollReason: String?
    /// Append files renamed in the watch's last events, by the kernel's cookie, with their old names; no file where none was known.
    var moved: [UInt32: (file: AppendFile?, name: FileName)] = [:]
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
