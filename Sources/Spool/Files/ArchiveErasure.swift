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
/// becomes one object a line. The new file belongs to the agent. What a file holds that is not lines (the
/// rest of a damaged file) cannot be searched; it is named, and does not go into a new file.
public struct ArchiveErasure: Sendable {
    /// Says whether a line is to be removed, given the app whose folder it is in.
    public typealias Search = (_ line: [UInt8], _ app: String) -> Bool

    /// The name of a new file before it replaces the old one. Hidden, so it is never taken for an archived
    /// file if a crash leaves it behind.
    private static let temporary = ".erase.new"
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

    /// Searches the whole archive. Blocks until then, so it needs a thread of its own.
    public func run() -> ErasedFiles {
        let search = makeSearch()
        var erased = ErasedFiles()
        for day in names(in: directory, &erased) where Archive.isDay(FileName(day)) {
            for app in names(in: "\(directory)/\(day)", &erased) {
                let folder = "\(directory)/\(day)/\(app)"
                for name in names(in: folder, &erased) where !name.hasPrefix(".") {
                    let path = "\(folder)/\(name)"
                    guard FileStatus(link: path)?.isRegular == true else { continue }
                    erase(path, in: folder, { search($0, app) }, &erased)
                }
            }
        }
        return erased
    }

    /// The names in a directory, sorted; none if there is no such directory.
    private func names(in directory: String, _ erased: inout ErasedFiles) -> [String] {
        do throws(SystemError) {
            return try WholeFile.names(in: directory).sorted()
        } catch {
            if error.number != ENOENT, error.number != ENOTDIR {
                erased.fail(directory, error.description)
            }
            return []
        }
    }

    /// Removes the events of one file.
    private func erase(
        _ path: String, in folder: String, _ isFound: ([UInt8]) -> Bool, _ erased: inout ErasedFiles
    ) {
        do throws(SpoolError) {
            var found = 0
            var staying = 0
            let problem = try read(path) { line in
                if isFound(line) {
                    found += 1
                } else {
                    staying += 1
                }
            }
            if let problem {
                erased.fail(path, problem)
            }
            guard found > 0 else { return }
            if !isTrial {
                try relaying(try replace(path, in: folder, isEmpty: staying == 0, without: isFound)) {
                    (error: SystemError) in SpoolError(.cannotRead, "cannot replace \(path)", cause: error)
                }
            }
            erased.events += found
            erased.files += 1
        } catch {
            // The file may have grown too old meanwhile, and be gone.
            guard FileStatus(link: path) != nil else { return }
            erased.fail(path, error.description)
        }
    }

    /// Reads the lines of a file, each with its line feed.
    ///
    /// - Returns: why the rest of the file, or a part of it, could not be read as lines; nil if it could.
    private func read(_ path: String, _ take: ([UInt8]) -> Void) throws(SpoolError) -> String? {
        let file = try BackfillFile(path: path, maxEventSize: longest)
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

    /// Replaces a file by one without the lines that are found, or removes it if none is left.
    private func replace(
        _ path: String, in folder: String, isEmpty: Bool, without isFound: ([UInt8]) -> Bool
    ) throws(SystemError) {
        if isEmpty {
            guard unlink(path) == 0 else { throw SystemError("unlink") }
        } else {
            let temporary = "\(folder)/\(ArchiveErasure.temporary)"
            unlink(temporary)
            do throws(SystemError) {
                try write(to: temporary, the: path, without: isFound)
                guard rename(temporary, path) == 0 else { throw SystemError("rename") }
            } catch {
                unlink(temporary)
                throw error
            }
        }
        // Otherwise a power cut could bring the old file back.
        let open = try Descriptor(checking: open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
        guard fsync(open.raw) == 0 else { throw SystemError("fsync") }
    }

    /// Writes the lines of a file that stay, durably.
    private func write(
        to target: String, the path: String, without isFound: ([UInt8]) -> Bool
    ) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let output = try Descriptor(checking: open(target, flags, 0o640), "open")
        let compression: Compression =
            path.hasSuffix(".gz") ? .gzip : path.hasSuffix(".zst") ? .zstd : .none
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
        do throws(SpoolError) {
            _ = try read(path) { line in
                guard !isFound(line) else { return }
                waiting += line
                if waiting.count >= ArchiveErasure.pieceSize {
                    flush()
                }
            }
        } catch {
            throw error.cause ?? SystemError("read", number: EIO)
        }
        flush()
        if let failure { throw failure }
        guard fsync(output.raw) == 0 else { throw SystemError("fsync") }
    }
}
