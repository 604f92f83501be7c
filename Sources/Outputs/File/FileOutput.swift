package import EventLoops
internal import Glibc
package import Model

/// Appends batches to a file, an event on each line; a batch is on the disk before it is acknowledged.
///
/// The file may be rotated at any time by renaming or deleting it: the next batch goes to a new file of the
/// same name. A batch that could not be written completely leaves nothing behind. Only a crash during a
/// write can leave a partial line; the next opening ends it with a line feed, and the whole batch follows.
/// After a crash between the write and the acknowledgement a batch is in the file twice, because a file
/// cannot recognise a repeat. Runs on the loop passed to `init`, and blocks it while the disk writes:
/// nothing else should run there.
package actor FileOutput: MeasuredOutput {
    package nonisolated let loop: EventLoop
    private let path: String
    private let builder: BodyBuilder
    /// The open file; nil before the first batch and after a failed write, so that the next batch opens it
    /// again.
    private var file: OpenFile?
    package var measures = OutputMeasures()

    /// An open file with its identity, by which a rotation is noticed.
    private final class OpenFile {
        let descriptor: Descriptor
        let status: FileStatus

        init(_ descriptor: consuming Descriptor, _ status: FileStatus) {
            self.descriptor = descriptor
            self.status = status
        }
    }

    /// A failed system call: what was attempted, for the message, and the number of errno.
    private struct WriteError: Error {
        let step: String
        var number = errno
    }

    /// Opens nothing yet.
    ///
    /// - Parameter path: absolute; its directory must exist.
    /// - Throws: `OutputError` with code `library` if there is no memory.
    package init(path: String, on loop: EventLoop) throws(OutputError) {
        self.path = path
        self.loop = loop
        builder = try BodyBuilder(NDJSONEncoder(), .none)
    }

    /// Appends a batch, and returns when it is on the disk.
    package func send(_ batch: Batch) async -> Outcome {
        do throws(OutputError) {
            let lines = try builder.body(of: batch)
            do throws(WriteError) {
                try append(lines)
                measures.sentBytes += lines.count
                return .acknowledged
            } catch {
                file = nil
                return outcome(of: error)
            }
        } catch {
            return error.failure.outcome
        }
    }

    /// The outcome for an error: conditions that pass by themselves are retried, others hold the
    /// destination until a person has looked.
    private func outcome(of error: WriteError) -> Outcome {
        let said = SystemError.clause(error.number)
        let failure = Failure(kind: .local, message: "cannot \(error.step) \(path): \(said)")
        switch error.number {
        case ENOSPC, EDQUOT, EIO, EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM: return .retry(failure)
        default: return .held(failure)
        }
    }

    /// Appends the lines and syncs them. If that fails, the file is truncated to its old length.
    private func append(_ lines: [UInt8]) throws(WriteError) {
        let file = try current()
        let size = lseek(file.descriptor.raw, 0, SEEK_END)
        guard size >= 0 else { throw WriteError(step: "look at") }
        do throws(WriteError) {
            try write(lines, to: file.descriptor.raw)
            guard fdatasync(file.descriptor.raw) == 0 else { throw WriteError(step: "sync") }
        } catch {
            // The whole batch will be sent again, so nothing of it may stay. If even the truncation fails,
            // the next opening ends the partial line.
            _ = ftruncate(file.descriptor.raw, size)
            throw error
        }
    }

    /// Writes all bytes, however the kernel divides them.
    private func write(_ bytes: [UInt8], to raw: Int32) throws(WriteError) {
        try relaying(try WholeFile.write(bytes, to: raw)) { (error: SystemError) in
            WriteError(step: "write to", number: error.number)
        }
    }

    /// The file of that name as it is now: opened again if it was renamed or deleted. With O_NONBLOCK,
    /// because opening a device, or a file on which another process holds a lease (fcntl(2)), could
    /// otherwise block.
    private func current() throws(WriteError) -> OpenFile {
        let there = FileStatus(path)
        if let file, let there, (there.device, there.inode) == (file.status.device, file.status.inode) {
            return file
        }
        let raw = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o640)
        guard raw >= 0 else { throw WriteError(step: "open") }
        let descriptor = Descriptor(raw)
        let status = try relaying(try FileStatus(of: raw)) { (error: SystemError) in
            WriteError(step: "look at", number: error.number)
        }
        // A pipe or a device does not keep what is written, so nothing could be acknowledged.
        guard status.isRegular else { throw WriteError(step: "use", number: EINVAL) }
        if there == nil {
            try syncDirectory()
        }
        // A partial line from a crash must not spoil the line after it.
        var last: UInt8 = 0
        // bounded: used with one byte less, if it is more than 0.
        if status.size > 0, pread(raw, &last, 1, off_t(status.size - 1)) == 1, last != UInt8(ascii: "\n") {
            try write([UInt8(ascii: "\n")], to: raw)
        }
        let opened = OpenFile(descriptor, status)
        file = opened
        return opened
    }

    /// Syncs the directory: without that, a new file may be missing after a crash although its content was
    /// synced (fsync(2)).
    private func syncDirectory() throws(WriteError) {
        let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(
            separator: "/")
        let raw = open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw WriteError(step: "open the directory of") }
        let directory = Descriptor(raw)
        guard fsync(directory.raw) == 0 else { throw WriteError(step: "sync the directory of") }
    }
}
