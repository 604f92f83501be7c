internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// What an erasure found in the archive.
public struct ErasedFiles: Sendable, Equatable {
    /// Events and lines that were removed, or would be in a trial.
    public var events = 0
    /// Files that held them.
    public var files = 0
    /// Number of files that could not be searched to their end, or not be replaced.
    public var failures = 0
    /// The first of these files, each with the reason.
    public var failed: [String] = []

    /// Most names in `failed`.
    static let mostNames = 16

    /// Nothing found.
    public init() {}

    /// Names a file or folder that cannot be searched, unless it is gone or no folder.
    fileprivate mutating func failUnlessGone(_ path: String, _ error: SystemError) {
        guard error.number != ENOENT, error.number != ENOTDIR else { return }
        fail(path, error.description)
    }

    fileprivate mutating func fail(_ path: String, _ reason: String) {
        failures += 1
        if failed.count < ErasedFiles.mostNames {
            failed.append("\(path): \(reason)")
        }
    }
}

/// The erasure of a person's events from the files of the archive (`after_read = "archive"`).
///
/// A file with such events is replaced by one with its other events, in the same compression; a JSON text
/// becomes one object a line. The new file belongs to the agent. A file that cannot be read to its end, or
/// has a line that is too long, is named and stays as it is. No link is followed in the archive.
public struct ArchiveErasure: Sendable {
    /// Says whether a line is to be removed, given the app whose folder it is in.
    public typealias Search = (_ line: [UInt8], _ app: String) -> Bool

    /// The name of a new file before it replaces the old one. Hidden, so it is never taken for an archived
    /// file if a crash leaves it behind.
    private static let temporary = FileName(".erase.new")
    /// Bytes of lines that are read at a time, and compressed as one frame.
    private static let pieceSize = 1 << 20

    private let directory: String
    private let longest: Int
    private let isTrial: Bool
    private let makeSearch: @Sendable () -> Search

    /// - Parameters:
    ///   - directory: the archive's path; it need not exist.
    ///   - maxEventSize: the longest event in bytes.
    ///   - isTrial: only counts.
    ///   - makeSearch: makes the search, on the thread that calls `run`.
    public init(
        _ directory: String, maxEventSize: Int, isTrial: Bool, makeSearch: @escaping @Sendable () -> Search
    ) {
        self.directory = directory
        longest = maxEventSize
        self.isTrial = isTrial
        self.makeSearch = makeSearch
    }

    /// Searches the whole archive. Blocks until then, so it needs a thread of its own. At most one erasure
    /// may run at a time.
    public func run() -> ErasedFiles {
        var erased = ErasedFiles()
        let directory = directory
        guard SilentFiles.answer(about: directory, { FileStatus(directory) }) != nil else {
            erased.fail(directory, "its file system does not answer")
            return erased
        }
        let search = makeSearch()
        do throws(SystemError) {
            let root = try FileSystem.openRoot(directory)
            for day in names(in: root.raw, directory, &erased) where Archive.isDay(day) {
                erase(day: day, in: root.raw, search, &erased)
            }
        } catch {
            erased.failUnlessGone(directory, error)
        }
        return erased
    }

    /// Searches the folders of one day.
    private func erase(day: FileName, in root: Int32, _ search: Search, _ erased: inout ErasedFiles) {
        let path = "\(directory)/\(day.text)"
        do throws(SystemError) {
            let apps = try FileSystem.openDirectory(root, day)
            for app in names(in: apps.raw, path, &erased) {
                erase(app: app, in: apps.raw, "\(path)/\(app.text)", search, &erased)
            }
        } catch {
            erased.failUnlessGone(path, error)
        }
    }

    /// Searches the files of one app in one day.
    private func erase(
        app: FileName, in day: Int32, _ path: String, _ search: Search, _ erased: inout ErasedFiles
    ) {
        do throws(SystemError) {
            let folder = try FileSystem.openDirectory(day, app)
            if !isTrial {
                // A crash may have left it, with events of people.
                _ = ArchiveErasure.temporary.withCString { unlinkat(folder.raw, $0, 0) }
            }
            for name in names(in: folder.raw, path, &erased) where !name.isHidden {
                let whole = "\(path)/\(name.text)"
                do throws(SystemError) {
                    try erase(name, in: folder.raw, whole, { search($0, app.text) }, &erased)
                } catch {
                    erased.failUnlessGone(whole, error)
                }
            }
        } catch {
            erased.failUnlessGone(path, error)
        }
    }

    /// The names in a directory, sorted; none if it cannot be read.
    private func names(
        in directory: Int32, _ path: String, _ erased: inout ErasedFiles
    ) -> [FileName] {
        do throws(SystemError) {
            let stream = try DirectoryStream(try FileSystem.openDirectory(directory, FileName(".")))
            var names: [FileName] = []
            while let entry = try stream.next() { names.append(entry.name) }
            return names.sorted()
        } catch {
            erased.failUnlessGone(path, error)
            return []
        }
    }

    /// Removes the events of one file.
    private func erase(
        _ name: FileName, in folder: Int32, _ path: String, _ isFound: ([UInt8]) -> Bool,
        _ erased: inout ErasedFiles
    ) throws(SystemError) {
        let looked = try FileSystem.openPath(folder, name)
        let status = try FileSystem.status(looked)
        guard status.isRegular else { return }
        let content = try FileSystem.read(looked)
        let source = Source(path: path, name: FileSystem.selfPath(content.raw), inode: status.inode)
        var found = 0
        var staying = 0
        let problem = try read(source) { line in
            if isFound(line) {
                found += 1
            } else {
                staying += 1
            }
        }
        // Lines that cannot be read could not be written either, so the file stays as it is.
        if let problem {
            return erased.fail(path, found == 0 ? problem : "\(problem); \(found) of its events stay")
        }
        guard found > 0 else { return }
        if !isTrial {
            try replace(name, in: folder, source, isEmpty: staying == 0, without: isFound)
        }
        erased.events += found
        erased.files += 1
    }

    /// An archived file that is open.
    private struct Source {
        /// The path for people, whose ending says the format.
        var path: String
        /// The path by which the open file is read.
        var name: String
        var inode: UInt64
    }

    /// Reads the lines of a file, each with its line feed.
    ///
    /// - Returns: why the rest of the file, or a part of it, could not be read as lines; nil if it could.
    private func read(_ source: Source, _ take: ([UInt8]) -> Void) throws(SystemError) -> String? {
        do throws(SpoolError) {
            return try readLines(source, take)
        } catch {
            throw error.cause ?? SystemError("read", number: EIO)
        }
    }

    private func readLines(_ source: Source, _ take: ([UInt8]) -> Void) throws(SpoolError) -> String? {
        let file = try BackfillFile(path: source.path, by: source.name, maxEventSize: longest)
        // Text in UTF-16 with its mark is searched as what it says.
        file.decode(nil)
        var problem: String?
        while let piece = try file.next(atMost: ArchiveErasure.pieceSize) {
            if let found = piece.problem {
                problem = found.detail
            } else {
                for line in piece.bytes.split(separator: 0x0A) { take(Array(line) + [0x0A]) }
            }
        }
        return problem
    }

    /// Replaces a file by one without the lines that are found, or removes it if none is left. A file that
    /// has grown too old meanwhile stays away.
    private func replace(
        _ name: FileName, in folder: Int32, _ source: Source, isEmpty: Bool,
        without isFound: ([UInt8]) -> Bool
    ) throws(SystemError) {
        let temporary = ArchiveErasure.temporary
        do throws(SystemError) {
            if !isEmpty {
                try write(to: temporary, in: folder, source, without: isFound)
            }
            let isThere = try FileSystem.status(folder, name).inode == source.inode
            if !isThere || isEmpty {
                try FileSystem.unlink(folder, isThere ? name : temporary)
            } else {
                let result = temporary.withCString { from in
                    name.withCString { renameat(folder, from, folder, $0) }
                }
                guard result == 0 else { throw SystemError("renameat") }
            }
        } catch {
            _ = temporary.withCString { unlinkat(folder, $0, 0) }
            throw error
        }
        // Otherwise a power cut could bring the old file back.
        try FileSystem.sync(folder)
    }

    /// Writes the lines of a file that stay, durably.
    private func write(
        to target: FileName, in folder: Int32, _ source: Source, without isFound: ([UInt8]) -> Bool
    ) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let raw = target.withCString { openat(folder, $0, flags, 0o640) }
        let output = try Descriptor(checking: raw, "openat")
        let compression: Compression =
            source.path.hasSuffix(".gz") ? .gzip : source.path.hasSuffix(".zst") ? .zstd : .none
        guard let compressor = try? FrameCompressor(compression) else {
            throw SystemError("write", number: ENOMEM)
        }
        var waiting: [UInt8] = []
        var failure: SystemError?
        func flush() {
            guard failure == nil, !waiting.isEmpty else { return }
            do throws(SystemError) {
                guard let frame = try? waiting.withUnsafeBytes({ try compressor.compress($0) }) else {
                    throw SystemError("write", number: ENOMEM)
                }
                try WholeFile.write(frame, to: output.raw)
            } catch {
                failure = error
            }
            waiting.removeAll(keepingCapacity: true)
        }
        _ = try read(source) { line in
            guard !isFound(line) else { return }
            waiting += line
            if waiting.count >= ArchiveErasure.pieceSize {
                flush()
            }
        }
        flush()
        if let failure { throw failure }
        guard fsync(output.raw) == 0 else { throw SystemError("fsync") }
    }
}
