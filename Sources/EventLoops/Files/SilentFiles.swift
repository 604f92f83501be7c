internal import CLinux
internal import Glibc
internal import Synchronization

/// Asks about files on file systems that may never answer: a network mount whose server is gone, or FUSE without its program.
public enum SilentFiles {
    /// How long to wait for an answer, in milliseconds: about as long as a slow disk may take.
    private static let patience: Int32 = 1000

    private struct State {
        /// Threads that ask, and have nothing to ask now.
        var idle: [EventLoop] = []
        /// What was asked about and not answered in time.
        var silent: Set<String> = []
    }

    private final class Answer<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
        let isThere: Descriptor

        init() throws(SystemError) {
            isThere = try Descriptor(checking: eventfd(0, Int32(EFD_CLOEXEC)), "eventfd")
        }
    }

    private static let state = Mutex(State())

    /// Asks on a thread of its own, and waits for a second at most. What has not answered is not asked again before it does.
    ///
    /// - Returns: the answer; nil: none.
    public static func answer<Value: Sendable>(
        about path: String, _ question: @escaping @Sendable () -> Value
    ) -> Value? {
        guard !state.withLock({ $0.silent.contains(path) }) else { return nil }
        // Without descriptors or threads left, asking at once is all that can be done.
        guard let answer = try? Answer<Value>(), let thread = state.withLock({ $0.idle.popLast() }) ?? makeThread()
        else { return question() }
        thread.post {
            let value = question()
            answer.value.withLock { $0 = value }
            var one: UInt64 = 1
            _ = write(answer.isThere.raw, &one, 8)
            state.withLock {
                $0.silent.remove(path)
                if $0.idle.isEmpty { $0.idle.append(thread) } else { thread.stop() }
            }
        }
        var waiting = pollfd(fd: answer.isThere.raw, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, patience) < 0, errno == EINTR {}
        return state.withLock { state in
            let value = answer.value.withLock(\.self)
            if value == nil { state.silent.insert(path) }
            return value
        }
    }

    /// First asks each path's file system at its root. A process that looks up a name while another one waits for the same name cannot be
    /// ended.
    public static func askMounts(of paths: [String]) {
        let table = (try? WholeFile.bytes(of: "/proc/self/mountinfo", atMost: 64 << 20)) ?? nil
        let points = String(decoding: table ?? [], as: UTF8.self).split(separator: "\n").compactMap {
            $0.split(separator: " ").dropFirst(4).first.map(String.init)
        }
        for path in paths {
            let above = points.filter { path == $0 || path.hasPrefix($0 == "/" ? $0 : $0 + "/") }
            guard let point = above.max(by: { $0.utf8.count < $1.utf8.count }),
                answer(about: point, { FileStatus(point) }) == nil
            else { continue }
            state.withLock { _ = $0.silent.insert(path) }
        }
    }

    private static func makeThread() -> EventLoop? {
        guard let thread = try? EventLoop(name: "files"), (try? thread.start()) != nil else { return nil }
        return thread
    }
}
