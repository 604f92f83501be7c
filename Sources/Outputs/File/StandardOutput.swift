package import EventLoops
internal import Glibc
package import Model

/// Writes batches to the agent's standard output, an event on each line, for containers and pipes.
///
/// A batch counts as acknowledged when the pipe, the terminal or the file has accepted all of it; the agent
/// cannot know what the reader does with it. If the reader does not read, an attempt ends after
/// `request_timeout`. A batch that was cut off by that continues where it was cut, before anything else is
/// written, so that no line is ever torn. Runs on the loop passed to `init`, and blocks it while nobody
/// reads: nothing else should run there.
package actor StandardOutput: MeasuredOutput {
    /// Bytes that a writable pipe accepts without blocking (PIPE_BUF, pipe(7)).
    private static let piece = 4096
    /// Milliseconds between two looks at whether the task was cancelled.
    private static let patience: Int32 = 200

    package nonisolated let loop: EventLoop
    private let descriptor: Int32
    private let timeout: Duration
    private let time: any TimeSource
    private let builder: BodyBuilder
    package var measures = OutputMeasures()
    /// The unwritten rest of a batch whose attempt timed out after some bytes; nil if no line is
    /// incomplete.
    private var rest: (batch: BatchID, lines: ArraySlice<UInt8>)?

    /// - Parameters:
    ///   - descriptor: 1, standard output; tests pass the end of a pipe. It is not closed.
    ///   - timeout: longest time for a batch.
    /// - Throws: `OutputError` with code `library` if there is no memory.
    package init(
        _ descriptor: Int32 = 1, timeout: Duration, on loop: EventLoop, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        self.descriptor = descriptor
        self.timeout = timeout
        self.loop = loop
        self.time = time
        builder = try BodyBuilder(NDJSONEncoder(), .none)
    }

    /// Writes the rest of the last batch first, if there is one. If that was this batch, it is done.
    package func send(_ batch: Batch) async -> Outcome {
        let deadline = time.bootTime + timeout
        if let cut = rest {
            if let failure = write(cut.lines, of: cut.batch, until: deadline) { return failure }
            if cut.batch == batch.header.id { return .acknowledged }
        }
        do throws(OutputError) {
            return write(try builder.body(of: batch)[...], of: batch.header.id, until: deadline)
                ?? .acknowledged
        } catch {
            return error.failure.outcome
        }
    }

    /// Writes lines until all are accepted. Returns nil, or the outcome of a failure.
    private func write(_ lines: ArraySlice<UInt8>, of batch: BatchID, until deadline: BootInstant) -> Outcome?
    {
        var left = lines
        rest = nil
        while !left.isEmpty {
            guard isWritable(until: deadline) else {
                // Only if some bytes were written must this batch continue; otherwise any batch may be
                // next.
                if left.startIndex > 0 {
                    rest = (batch, left)
                }
                return .retry(Failure(kind: .timeout, message: "nobody reads standard output"))
            }
            let count = left.prefix(StandardOutput.piece).withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count > 0 {
                left = left.dropFirst(count)
                measures.sentBytes += count
            } else if errno != EINTR && errno != EAGAIN {
                let number = errno
                // After some bytes the reader may have lines of the batch: a failure of kind `connection`
                // says that, as for a connection that broke.
                let failure = Failure(
                    kind: left.startIndex > 0 ? .connection : .local,
                    message: "cannot write to standard output: \(SystemError.clause(number))")
                // After EPIPE there is no reader for the rest of a line.
                guard number == ENOSPC || number == EIO else { return .held(failure) }
                if left.startIndex > 0 {
                    rest = (batch, left)
                }
                return .retry(failure)
            }
        }
        return nil
    }

    /// Waits until something can be written; false if the time is over or the task was cancelled.
    private func isWritable(until deadline: BootInstant) -> Bool {
        while !Task.isCancelled {
            var one = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&one, 1, StandardOutput.patience)
            if ready > 0 { return true }
            if ready < 0 && errno != EINTR { return true }
            if time.bootTime >= deadline { return false }
        }
        return false
    }
}
