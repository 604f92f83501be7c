package import EventLoops
internal import Glibc
package import Model

/// Writes batches to the agent's standard output, an event a line: for containers and pipes.
///
/// A batch counts as acknowledged when the pipe, the terminal or the file has taken all of it; what a reader does with
/// it afterwards is beyond the agent's control. A reader that does not read costs the destination's `request_timeout`;
/// a batch that was cut by that continues where it was cut, before anything else is written, so that no line is ever
/// torn. Lives on the loop that it is given, and blocks it while nobody reads: nothing else should run there.
package actor StandardOutput: MeasuredOutput {
    /// A pipe that says that it is writable takes so much without blocking (pipe(7): PIPE_BUF).
    private static let piece = 4096
    /// How soon a batch that was given up notices.
    private static let patience: Int32 = 200

    package nonisolated let loop: EventLoop
    private let descriptor: Int32
    private let timeout: Duration
    private let time: any TimeSource
    private let builder: BodyBuilder
    package var measures = OutputMeasures()
    private var rest: (batch: BatchID, lines: ArraySlice<UInt8>)?

    /// - Parameters:
    ///   - descriptor: 1, standard output; tests pass a pipe's end. It is not closed.
    ///   - timeout: how long a batch may take.
    /// - Throws: `OutputError` with code `library` for want of memory.
    package init(
        _ descriptor: Int32 = 1, timeout: Duration, on loop: EventLoop, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        self.descriptor = descriptor
        self.timeout = timeout
        self.loop = loop
        self.time = time
        builder = try BodyBuilder(NDJSONEncoder(), .none)
    }

    package func send(_ batch: Batch) async -> Outcome {
        let deadline = time.bootTime + timeout
        if let cut = rest {
            if let failure = write(cut.lines, of: cut.batch, until: deadline) { return failure }
            if cut.batch == batch.header.id { return .acknowledged }
        }
        do throws(OutputError) {
            return write(try builder.body(of: batch)[...], of: batch.header.id, until: deadline) ?? .acknowledged
        } catch {
            return error.failure.outcome
        }
    }

    private func write(_ lines: ArraySlice<UInt8>, of batch: BatchID, until deadline: BootInstant) -> Outcome? {
        var left = lines
        rest = nil
        while !left.isEmpty {
            guard isWritable(until: deadline) else {
                // Only a batch of which something was written has to go on where it was.
                if left.startIndex > 0 { rest = (batch, left) }
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
                let failure = Failure(
                    kind: .local,
                    message: "cannot write to standard output: \(SystemError.message(number).lowercased())")
                // Nobody will ever read what was begun.
                return number == ENOSPC || number == EIO ? .retry(failure) : .held(failure)
            }
        }
        return nil
    }

    /// Waits until something can be written; false when time is over or the batch was given up.
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
