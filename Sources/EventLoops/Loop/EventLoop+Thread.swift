internal import CLinux
internal import Glibc

extension EventLoop {
    /// Creates the loop's thread, which ends at `stop`.
    ///
    /// The thread blocks every signal: signals are read from a descriptor (`SignalWatcher`) and never
    /// interrupt a system call of a loop.
    /// - Throws: `SystemError` if the process may not create more threads.
    public func start() throws(SystemError) {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self)
        let result = pthread_create(
            &thread, nil,
            { argument in
                // The argument is the reference that was retained for this thread.
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

    /// Path of the file that the loop's thread waits for in a system call; nil if it waits for none or
    /// the kernel does not say. From any thread. It lets the watchdog name the mount that does not
    /// answer.
    public var awaitedFile: String? {
        // The line is `257 0xffffff9c 0x7f…`: the number of the call and its arguments
        // (/proc/pid/syscall, proc(5)). For calls on files the first argument is a descriptor, or
        // AT_FDCWD and the second is a path.
        let call = (try? WholeFile.bytes(of: "/proc/self/task/\(threadID)/syscall", atMost: 1 << 10)) ?? []
        let words = String(decoding: call, as: UTF8.self).split(separator: " ")
        let arguments = words.dropFirst().prefix(2).compactMap { UInt64($0.dropFirst(2), radix: 16) }
        guard words.first != "-1", arguments.count == 2 else { return nil }
        guard Int32(truncatingIfNeeded: arguments[0]) == AT_FDCWD else {
            // A target that is not a path is not a file: a sleeping loop waits for its epoll
            // descriptor.
            return RealPath.target(of: "/proc/self/fd/\(arguments[0])").flatMap {
                $0.hasPrefix("/") ? $0 : nil
            }
        }
        // The thread may return from the call at any time and free the path. Reading it through a file
        // fails then, where reading memory would crash.
        var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(memory) }
        guard pread(memory, &path, path.count, Int(bitPattern: UInt(arguments[1]))) > 0 else { return nil }
        return String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Runs an asynchronous program on the calling thread and returns its result: what `main` does.
    ///
    /// The calling thread becomes a loop; `body` runs on it, and so do the actors that are given this
    /// loop.
    /// - Parameter failure: makes the error to throw if the process has no descriptors left.
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
        guard let result else {
            preconditionFailure("the loop stopped before its program ended")
        }
        return try result.get()
    }
}

extension EventLoop {
    /// Runs `body` on the loop's thread, and blocks the calling thread until it is done; on the loop's own
    /// thread, at once. Only for a thread that the loop never waits for: otherwise both would wait for ever.
    public func runAndWait<Result>(_ body: @escaping () -> Result) -> Result {
        guard !isCurrent else { return body() }
        nonisolated(unsafe) let body = body
        nonisolated(unsafe) var result: Result?
        let end = Semaphore()
        post {
            result = body()
            end.signal()
        }
        end.wait()
        guard let result else {
            preconditionFailure("the loop \(name) signalled the end of the work without a result")
        }
        return result
    }
}
