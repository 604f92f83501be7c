internal import CLinux
internal import Glibc
internal import Synchronization

/// Asks about files on file systems that may never answer: a network mount whose server is gone, or
/// FUSE whose process hangs.
///
/// Such a call cannot be interrupted, so it runs on a thread that may be lost, and the caller waits for
/// a second.
public enum SilentFiles {
    /// Milliseconds to wait for an answer: as long as a slow disk may take.
    private static let patience: Int32 = 1000

    /// State that all callers share.
    private struct State {
        /// An idle thread; one is kept.
        var idle: [EventLoop] = []
        /// Paths whose question was not answered in time. They are not asked again until it is, because
        /// each further question would cost another thread.
        var silent: Set<String> = []
    }

    /// The answer to one question, handed from the asking thread to the caller.
    private final class Answer<Value: Sendable>: Sendable {
        /// The answer; nil until there is one.
        let value = Mutex<Value?>(nil)
        /// An eventfd that is readable when the answer is there.
        let isThere: Descriptor

        init() throws(SystemError) {
            isThere = try Descriptor(checking: eventfd(0, Int32(EFD_CLOEXEC)), "eventfd")
        }
    }

    private static let state = Mutex(State())

    /// Runs `question` on another thread and waits for at most a second. A path that has not answered
    /// is not asked again before it does.
    ///
    /// - Returns: the answer; nil if there was no answer in time.
    public static func answer<Value: Sendable>(
        about path: String, _ question: @escaping @Sendable () -> Value
    ) -> Value? {
        guard !state.withLock({ $0.silent.contains(path) }) else { return nil }
        // Without descriptors or threads left, the question can only be asked on this thread.
        guard let answer = try? Answer<Value>(),
            let thread = state.withLock({ $0.idle.popLast() }) ?? makeThread()
        else { return question() }
        thread.post {
            let value = question()
            answer.value.withLock { $0 = value }
            var one: UInt64 = 1
            _ = write(answer.isThere.raw, &one, 8)
            putBack(thread, after: path)
        }
        var waiting = pollfd(fd: answer.isThere.raw, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, patience) < 0, errno == EINTR {}
        return state.withLock { state in
            let value = answer.value.withLock(\.self)
            if value == nil {
                state.silent.insert(path)
            }
            return value
        }
    }

    /// Runs `question` on another thread and waits for nobody; `then` gets the answer on that thread, maybe
    /// never. While a question about a path is not answered, no other one about it is asked.
    ///
    /// - Parameter path: a name of its own, not one that `answer` is asked about.
    public static func ask<Value>(
        about path: String, _ question: @escaping @Sendable () -> Value,
        then: @escaping @Sendable (Value) -> Void
    ) {
        guard state.withLock({ $0.silent.insert(path).inserted }) else { return }
        guard let thread = state.withLock({ $0.idle.popLast() }) ?? makeThread() else {
            // Without a thread the question is asked another time.
            return state.withLock { _ = $0.silent.remove(path) }
        }
        thread.post {
            then(question())
            putBack(thread, after: path)
        }
    }

    /// The question about a path was answered: keeps its thread, unless another one is idle.
    private static func putBack(_ thread: EventLoop, after path: String) {
        state.withLock {
            $0.silent.remove(path)
            if $0.idle.isEmpty {
                $0.idle.append(thread)
            } else {
                thread.stop()
            }
        }
    }

    /// Where a path leads; the path itself if its file system does not answer.
    public static func realPath(of path: String) -> String {
        answer(about: path) { RealPath.of(path) } ?? path
    }

    /// Asks the file system of each path at its mount point first.
    ///
    /// A process that looks up a name while another thread waits for the same name cannot be killed, so
    /// paths on silent mounts are marked before anything else asks about them.
    public static func askMounts(of paths: [String]) {
        let table = (try? WholeFile.bytes(of: "/proc/self/mountinfo", atMost: 64 << 20)) ?? nil
        let points = mountPoints(in: table ?? [])
        for path in paths {
            let above = points.filter { path == $0 || path.hasPrefix($0 == "/" ? $0 : $0 + "/") }
            guard let point = above.max(by: { $0.utf8.count < $1.utf8.count }),
                answer(about: point, { FileStatus(point) }) == nil
            else { continue }
            state.withLock { _ = $0.silent.insert(path) }
        }
    }

    /// The mount points of a `mountinfo` (proc_pid_mountinfo(5)), which writes blanks, tabs, line feeds and
    /// backslashes as three octal digits behind a backslash.
    package static func mountPoints(in table: [UInt8]) -> [String] {
        table.split(separator: UInt8(ascii: "\n")).compactMap { line in
            line.split(separator: UInt8(ascii: " ")).dropFirst(4).first.map { field in
                let field = Array(field)
                var path: [UInt8] = []
                var offset = 0
                while offset < field.count {
                    let digits = field[(offset + 1)...].prefix(3)
                    if field[offset] == UInt8(ascii: "\\"), digits.count == 3,
                        let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
                    {
                        path.append(code)
                        offset += 4
                    } else {
                        path.append(field[offset])
                        offset += 1
                    }
                }
                return String(decoding: path, as: UTF8.self)
            }
        }
    }

    /// A new thread; nil if the process may not create another.
    private static func makeThread() -> EventLoop? {
        guard let thread = try? EventLoop(name: "files"), (try? thread.start()) != nil else { return nil }
        return thread
    }
}
