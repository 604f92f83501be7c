internal import CLinux
internal import EventLoops
internal import Glibc

/// One run of a function's program: started, fed, listened to, ended. On one loop's thread.
///
/// It ends exactly once: when the program ends, prints too much, or is killed. Whatever it has forked into its process
/// group is killed then, before its id can become another's; what left the group is not waited for.
final class FunctionProcess {
    enum End {
        /// The program ended by itself with 0; what it printed.
        case printed([UInt8])
        /// With another code, or by a signal: 128 and its number.
        case failed(Int32)
        case tooLarge
        case killed
    }

    /// The most that a function may print, in bytes.
    static let largestOutput = 64 << 10
    /// What is kept of a program's standard error, in bytes.
    static let longestComplaint = 256

    private let loop: EventLoop
    private let process: pid_t
    private let watch: Int32
    private var input: Int32
    private var output: Int32
    private var errors: Int32
    private var request: ArraySlice<UInt8>
    private var printed: [UInt8] = []
    private(set) var complaint: [UInt8] = []
    private var end: ((End) -> Void)?

    /// - Parameter end: told once how it ended, never before this returns.
    /// - Throws: `SystemError` when nothing was started.
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
            // What a loop calls back holds the run until it has ended.
            try loop.watch(watch, for: .readable) { _ in self.processEnded() }
            try loop.watch(output, for: .readable) { _ in self.takeOutput() }
            try loop.watch(errors, for: .readable) { _ in self.takeComplaint() }
            try loop.watch(input, for: .writable) { _ in self.giveInput() }
        } catch {
            _ = over()
            throw error
        }
    }

    func stop() { over()?.tell(.killed) }

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

    private static func spawn(
        _ command: [String], input: Int32, output: Int32, errors: Int32
    ) throws(SystemError) -> pid_t {
        // Nothing of the agent's own environment: it may name secrets.
        let environment = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        let words = (command + environment).map { strdup($0) }
        defer { for word in words { free(word) } }
        let arguments = words[..<command.count].map { UnsafePointer($0) } + [nil]
        let variables = words[command.count...].map { UnsafePointer($0) } + [nil]
        guard words.allSatisfy({ $0 != nil }) else { throw SystemError("strdup", number: ENOMEM) }
        let process = clinux_spawn(arguments, variables, input, output, errors)
        guard process > 0 else { throw SystemError("posix_spawn") }
        return process
    }

    private func giveInput() {
        while !request.isEmpty {
            let count = request.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            // A program need not read what it does not want (EPIPE).
            guard count > 0 else { break }
            request = request.dropFirst(count)
        }
        drop(&input)
    }

    /// Reads on; nil when nothing is there, yet or any more.
    private func next(_ descriptor: inout Int32, _ block: inout [UInt8]) -> ArraySlice<UInt8>? {
        while descriptor >= 0 {
            let count = read(descriptor, &block, block.count)
            if count > 0 { return block[..<count] }
            if count < 0, errno == EINTR { continue }
            if count == 0 || errno != EAGAIN { drop(&descriptor) }
            break
        }
        return nil
    }

    /// Takes what the program has printed; false when that was too much, and it is over.
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

    /// Takes what the program says on its standard error: the beginning is kept, the rest is taken so that it may go on.
    private func takeComplaint() {
        var block = [UInt8](repeating: 0, count: 4096)
        // One that says much is asked again when the loop comes round: it holds up nobody.
        repeat {
            guard let more = next(&errors, &block) else { return }
            complaint += more.prefix(FunctionProcess.longestComplaint - complaint.count)
        } while complaint.count < FunctionProcess.longestComplaint
    }

    private func processEnded() {
        // What it printed is in the pipe by now; a child of its that holds the pipe open is not waited for.
        guard takeOutput() else { return }
        takeComplaint()
        guard let (tell, status) = over() else { return }
        tell(status == 0 ? .printed(printed) : .failed(status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F))
    }

    /// Leaves nothing behind; gives whom to tell, once, and the program's status.
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

    /// Kills what is left of a process group and takes its leader's status.
    @discardableResult
    private static func finish(_ process: pid_t) -> Int32 {
        // Until its status is taken the leader's id is nobody else's, its group's neither.
        kill(-process, SIGKILL)
        var status: Int32 = -1
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    private func drop(_ descriptor: inout Int32) {
        guard descriptor >= 0 else { return }
        loop.forget(descriptor)
        close(descriptor)
        descriptor = -1
    }
}
