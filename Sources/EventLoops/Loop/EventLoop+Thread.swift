internal import CLinux
internal import Glibc

extension EventLoop {
    /// Gives the loop its own thread, which ends at `stop`.
    ///
    /// Every signal is blocked on it: signals are read from a descriptor (`SignalWatcher`), never handled in passing.
    /// - Throws: `SystemError` when the process may have no more threads.
    public func start() throws(SystemError) {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self)
        let result = pthread_create(
            &thread, nil,
            { argument in
                // The argument is the box that was retained for this thread below.
                guard let argument else { return nil }
                let loop = Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue()
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_BLOCK, &all, nil)
                clinux_name_thread(loop.name)
                loop.run()
                return nil
            }, box.toOpaque())
        guard result == 0 else {
            box.release()
            throw SystemError("pthread_create", number: result)
        }
        pthread_detach(thread)
    }

    /// The file that its thread waits for in a system call, as far as the kernel says. From any thread.
    public var awaitedFile: String? {
        // `257 0xffffff9c 0x7f…`: the call's number and its arguments; for files the first is a descriptor, or a path follows.
        let call = (try? WholeFile.bytes(of: "/proc/self/task/\(threadID)/syscall", atMost: 1 << 10)) ?? []
        let words = String(decoding: call, as: UTF8.self).split(separator: " ")
        let arguments = words.dropFirst().prefix(2).compactMap { UInt64($0.dropFirst(2), radix: 16) }
        guard words.first != "-1", arguments.count == 2 else { return nil }
        guard Int32(truncatingIfNeeded: arguments[0]) == AT_FDCWD else {
            // What begins otherwise is no file: a loop that sleeps waits for its epoll.
            return RealPath.target(of: "/proc/self/fd/\(arguments[0])").flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        // The thread may go on meanwhile: read as a file, its memory may be gone.
        var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(memory) }
        guard pread(memory, &path, path.count, Int(bitPattern: UInt(arguments[1]))) > 0 else { return nil }
        return String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Runs an asynchronous program on the calling thread and returns its result: what `main` does.
    ///
    /// The calling thread becomes a loop of that name; the body runs on it, as do the actors that are given the loop.
    /// - Parameter failure: what is thrown when the process has no descriptors left.
    public static func runProgram<Value: Sendable, Failure: Error>(
        name: String, failure: (SystemError) -> Failure,
        _ body: @escaping @Sendable (EventLoop) async throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: name) } catch { throw failure(error) }
        nonisolated(unsafe) var result: Result<Value, Failure>?
        Task(executorPreference: loop) {
            do throws(Failure) { result = .success(try await body(loop)) } catch { result = .failure(error) }
            loop.stop()
        }
        loop.run()
        guard let result else { preconditionFailure("the loop stopped before its program ended") }
        return try result.get()
    }
}
