internal import EventLoops
internal import Glibc
internal import Logs

/// How many descriptors the reader may hold: no more than the process has left, whatever is configured.
extension SpoolReader {
    /// What is left for the queue, for requests, for clients of the ports.
    private static let reserve = 24
    private static let fewestFiles = 2
    private static let fewestDirectories = 2

    /// How long after a shortage it is over.
    private static let shortage = Duration.seconds(60)

    /// At the start, and after a shortage: compares what is configured with what the process may open.
    func fitDescriptors() {
        held.isShort = false
        held.mostFiles = options.maxOpenFiles
        held.mostDirectories = HeldDescriptors.mostDirectories
        counters.loweredOpenFiles = nil
        let limit = SpoolReader.descriptorLimit
        guard limit < 1 << 30 else { return }
        let openDescriptors = (try? WholeFile.names(in: "/proc/self/fd"))?.count ?? 16
        let room = limit - openDescriptors - SpoolReader.reserve
        guard room < held.mostFiles + held.mostDirectories + SpoolReader.reserve else { return }
        lower(files: room / 2, directories: room / 4, limit: limit)
    }

    /// There are none left: for a while half of those that are held open must do.
    func shedDescriptors() {
        if !held.isShort { schedule(after: SpoolReader.shortage) { self.fitDescriptors() } }
        held.isShort = true
        lower(
            files: min(held.mostFiles, held.files.count) / 2,
            directories: min(held.mostDirectories, held.directories.count) / 2, limit: SpoolReader.descriptorLimit)
    }

    private static var descriptorLimit: Int {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return isKnown ? Int(clamping: limit.rlim_cur) : .max
    }

    private func lower(files: Int, directories: Int, limit: Int) {
        let files = min(held.mostFiles, max(SpoolReader.fewestFiles, files))
        held.mostDirectories = min(held.mostDirectories, max(SpoolReader.fewestDirectories, directories))
        while held.directories.count > held.mostDirectories { held.directories.removeFirst().descriptor = nil }
        guard files < held.mostFiles else { return }
        held.mostFiles = files
        closeIdleFiles()
        counters.loweredOpenFiles = .init(files: files, limit: limit)
        log.warning(
            "fewer files are held open than spool.max_open_files allows: the process may not open more",
            ["files": files, "descriptors": limit, "hint": "raise LimitNOFILE"])
    }
}
