/// The directories and append files that are held open, and how many may be.
struct HeldDescriptors {
    /// How many directories are held open at most, where the process may open enough.
    static let mostDirectories = 64

    /// The directories, the one that was needed longest ago first.
    var directories: [SpoolDirectory] = []
    var files: [AppendFile] = []
    var mostDirectories = HeldDescriptors.mostDirectories
    var mostFiles: Int
    /// A file that is being compared with others, which are opened meanwhile: it stays open.
    var compared: AppendFile?
    /// Whether the process had none left a short time ago.
    var isShort = false
    /// Counts what files are needed for: the one with the lowest count was not needed for longest.
    var uses: UInt64 = 0

    init(mostFiles: Int) { self.mostFiles = mostFiles }
}
