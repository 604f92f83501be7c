internal import EventLoops
internal import Glibc

/// Child processes of a command: other programs and a second agent. They get an environment of their own, so
/// that nothing of the caller's changes what they do.
enum ChildProgram {
    /// Starts a program whose standard output and standard error go to a file or pipe.
    ///
    /// - Parameters:
    ///   - words: the name of the program, looked up in PATH if it has no slash, and its arguments.
    ///   - output: the descriptor to write to. It remains the caller's.
    /// - Returns: the process id; -1 if the program cannot be started.
    static func start(_ words: [String], _ output: Int32) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Without input: a program that asks a question would wait for ever.
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        // journalctl and others print dates and messages by the locale.
        var environment: [UnsafeMutablePointer<CChar>?] = [
            strdup("PATH=/usr/bin:/bin"), strdup("LC_ALL=C.UTF-8"), nil,
        ]
        defer { environment.forEach { free($0) } }
        var process: pid_t = 0
        return posix_spawnp(&process, words[0], &actions, nil, &arguments, &environment) == 0 ? process : -1
    }

    /// Starts a program whose output is appended to a file, which is created if it does not exist.
    static func start(_ words: [String], into path: String) -> pid_t {
        let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard raw >= 0 else { return -1 }
        let file = Descriptor(raw)
        return start(words, file.raw)
    }

    /// Ends a program and waits until it has ended.
    ///
    /// - Parameters:
    ///   - signal: the signal that asks it to end; 0 to only wait.
    ///   - limit: how long it has until SIGKILL.
    /// - Returns: whether it ended by itself; false if a signal ended it, or if it was not started.
    @discardableResult
    static func end(
        _ process: pid_t, _ signal: Int32 = SIGTERM, within limit: Duration = .seconds(10)
    ) -> Bool {
        guard process > 0 else { return false }
        if signal != 0 {
            kill(process, signal)
        }
        let deadline = SystemTime().bootTime + limit
        var status: Int32 = 0
        while waitpid(process, &status, WNOHANG) == 0 {
            // Sent again with each round until the process is gone, which does no harm.
            if SystemTime().bootTime > deadline {
                kill(process, SIGKILL)
            }
            usleep(20_000)
        }
        // The low seven bits are the signal that ended it (wait(2)).
        return status & 0x7F == 0
    }
}
