internal import EventLoops

/// How the reader notices changes: by inotify, or by polling if inotify cannot watch.
struct SpoolWatch {
    /// The reader's part of an inotify instance; nil if nothing can be watched.
    var member: KernelQueue.Member?
    /// Watched directories by the number of their watch.
    var directories: [Int32: SpoolDirectory] = [:]
    /// Append files with a watch of their own, by its number.
    var files: [Int32: AppendFile] = [:]
    /// Links to files that were followed.
    var links = FollowedLinks()
    /// Whether file leases are unavailable, for example without CAP_LEASE. Then the kernel cannot be asked
    /// whether a writer has a file open, and nameless files need watches of their own.
    var isWithoutLeases = false
    /// Directories that are polled.
    var polled: [SpoolDirectory] = []
    /// Why they are polled, for people; nil if none is.
    var pollReason: String?
    /// Renames of which only the first half was seen.
    var kernel = KernelWatch()
    var attention = Attention.listening
    /// Overflows of the kernel's event queue.
    var overflows = 0

    /// When the kernel's changes are read.
    enum Attention {
        /// Changes wake the loop.
        case listening
        /// Changes woke the loop and are in the inbox.
        case heard
        /// Changes do not wake the reader until this time: lines that come one by one wait for the next
        /// commit anyway, and one read for all of them saves wake-ups.
        case resting(until: BootInstant)
    }
}
