internal import CLinux
internal import EventLoops
internal import Glibc

/// One run of a function's program. All methods run on the thread of one loop.
///
/// It ends exactly once: when the program ends, prints too much, or is killed. Then its whole process group
/// is killed, before the process id can be used again. Processes that left the group are not waited for.
final class FunctionProcess {
    /// How a run ended.
    enum End {
        /// The program ended with code 0; its output.
        case printed([UInt8])
        /// The program ended with another code, or by a signal: 128 plus its number.
        case failed(Int32)
        /// The program printed too much, and was killed.
        case tooLarge
        /// The program was killed by `stop`.
        case killed
    }

    /// Most bytes of output, 64 KiB: a result becomes part of events.
    static let largestOutput = 64 << 10
    /// Bytes of standard error that are kept for the log.
    static let longestComplaint = 256

    /// The loop that watches the descriptors.
    private let loop: EventLoop
    /// Process id of the program, and of its group.
    private let process: pid_t
    /// The program's pidfd, readable when the program has ended (pidfd_open(2)).
    private let watch: Int32
    /// Write end of its standard input; -1 when closed.
    private var input: Int32
    /// Read end of its standard output; -1 when closed.
    private var output: Int32
    /// Read end of its standard error; -1 when closed.
    private var errors: Int32
    /// The part of the input that is not written yet.
    private var request: ArraySlice<UInt8>
    /// The output so far.
    private var printed: [UInt8] = []
    /// The beginning of standard error.
    private(set) var complaint: [UInt8] = []
    /// Gets the end; nil once it was called.
    private var end: ((End) -> Void)?

    /// Starts the program.
    ///
    /// - Parameter end: called once with the end, never before this returns.
    /// - Throws: `SystemError` if nothing was started.
    init(
        _ command: [String], request: [UInt8], on loop: EventLoop, end: @escaping (End) -> Void
    ) throws(SystemError) {
        self.loop = loop
        self.request = request[...]
        self.end = end
        let toProgram = try Pipe()
        let fromProgram = try Pipe()
        let aside = try Pipe()
        process = try FunctionProcess.spawn(
            command, input: toProgram.read.raw, output: fromProgram.write.raw, errors: aside.write.raw)
        let descriptor = clinux_pidfd_open(process)
        guard descriptor >= 0 else {
            let error = SystemError("pidfd_open")
            FunctionProcess.finish(process)
            throw error
        }
        watch = descriptor
        input = toProgram.write.release()
        output = fromProgram.read.release()
        errors = aside.read.release()
        for descriptor in [input, output, errors] { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        do throws(SystemError) {
            // The closures hold this object until the run has ended.
            try loop.watch(watch, for: .readable) { _ in self.processEnded() }
            try loop.watch(output, for: .readable) { _ in self.takeOutput() }
            try loop.watch(errors, for: .readable) { _ in self.takeComplaint() }
            try loop.watch(input, for: .writable) { _ in self.giveInput() }
        } catch {
            _ = over()
            throw error
        }
    }

    /// Kills the program. Does nothing after the end.
    func stop() { over()?.tell(.killed) }

    /// The two ends of a pipe. Ends that are not released are closed, so that an error in between leaks no
    /// descriptor.
    private struct Pipe: ~Copyable {
        let read: Descriptor
        let write: Descriptor

        init() throws(SystemError) {
            var ends: [Int32] = [-1, -1]
            guard clinux_pipe(&ends) == 0 else { throw SystemError("pipe") }
            read = Descriptor(ends[0])
            write = Descriptor(ends[1])
        }
    }

    /// Starts the program in a process group of its own.
    private static func spawn(
        _ command: [String], input: Int32, output: Int32, errors: Int32
    ) throws(SystemError) -> pid_t {
        // A new environment: the agent's own may name secrets.
        let environment = [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
        ]
        let words = (command + environment).map { strdup($0) }
        defer { for word in words { free(word) } }
        let arguments = words[..<command.count].map { UnsafePointer($0) } + [nil]
        let variables = words[command.count...].map { UnsafePointer($0) } + [nil]
        guard words.allSatisfy({ $0 != nil }) else { throw SystemError("strdup", number: ENOMEM) }
        let process = clinux_spawn(arguments, variables, input, output, errors)
        guard process > 0 else { throw SystemError("posix_spawn") }
        return process
    }

    /// Writes input while the pipe accepts it, and closes the pipe after the last byte.
    private func giveInput() {
        while !request.isEmpty {
            let count = request.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            // A program need not read its input: EPIPE is not a failure.
            guard count > 0 else { break }
            request = request.dropFirst(count)
        }
        drop(&input)
    }

    /// Reads the next bytes of a descriptor; nil if the pipe is empty, or at its end, where the
    /// descriptor is closed.
    private func next(_ descriptor: inout Int32, _ block: inout [UInt8]) -> ArraySlice<UInt8>? {
        while descriptor >= 0 {
            let count = read(descriptor, &block, block.count)
            if count > 0 { return block[..<count] }
            if count < 0, errno == EINTR { continue }
            if count == 0 || errno != EAGAIN {
                drop(&descriptor)
            }
            break
        }
        return nil
    }

    /// Reads output; returns false if it was too much, and the run is over.
    @discardableResult
    private func takeOutput() -> Bool {
        var block = [UInt8](repeating: 0, count: 16_384)
        while let more = next(&output, &block) {
            printed += more
            guard printed.count <= FunctionProcess.largestOutput else {
                over()?.tell(.tooLarge)
                return false
            }
        }
        return true
    }

    /// Reads standard error. The beginning is kept; the rest is read so that the program does not block on a
    /// full pipe.
    private func takeComplaint() {
        var block = [UInt8](repeating: 0, count: 4096)
        // A program that writes a lot is read once in each round of the loop, so that it does not delay
        // others.
        repeat {
            guard let more = next(&errors, &block) else { return }
            complaint += more.prefix(FunctionProcess.longestComplaint - complaint.count)
        } while complaint.count < FunctionProcess.longestComplaint
    }

    /// The program has ended.
    private func processEnded() {
        // All of its output is in the pipe by now. A child process that holds the pipe open is not waited
        // for.
        guard takeOutput() else { return }
        takeComplaint()
        guard let (tell, status) = over() else { return }
        tell(
            status == 0
                ? .printed(printed) : .failed(status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F))
    }

    /// Ends the run: closes all descriptors and kills the process group. Returns the closure to call and the
    /// exit status; nil if the run had ended before.
    private func over() -> (tell: (End) -> Void, status: Int32)? {
        guard let end else { return nil }
        self.end = nil
        drop(&input)
        drop(&output)
        drop(&errors)
        loop.forget(watch)
        close(watch)
        return (end, FunctionProcess.finish(process))
    }

    /// Kills what is left of a process group, and reaps its leader.
    @discardableResult
    private static func finish(_ process: pid_t) -> Int32 {
        // Until the leader is reaped, its id cannot be used for another process, nor for another group.
        kill(-process, SIGKILL)
        var status: Int32 = -1
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Stops watching a descriptor and closes it.
    private func drop(_ descriptor: inout Int32) {
        guard descriptor >= 0 else { return }
        loop.forget(descriptor)
        close(descriptor)
        descriptor = -1
    }
}
