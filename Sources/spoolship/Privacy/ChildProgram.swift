internal import EventLoops
internal import Glibc

enum ChildProgram {
    /// Starts a program with its output in a file or pipe; below 1 when it cannot be.
    static func start(_ words: [String], _ output: Int32) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=/usr/bin:/bin"), strdup("LC_ALL=C.UTF-8"), nil]
        defer { environment.forEach { free($0) } }
        var process: pid_t = 0
        return posix_spawnp(&process, words[0], &actions, nil, &arguments, &environment) == 0 ? process : -1
    }

    /// Starts a program with its output in a new file.
    static func start(_ words: [String], into path: String) -> pid_t {
        let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard raw >= 0 else { return -1 }
        let file = Descriptor(raw)
        return start(words, file.raw)
    }

    /// Ends a program, and waits until it has ended: by a signal, and after so long by force.
    static func end(_ process: pid_t, _ signal: Int32 = SIGTERM, within limit: Duration = .seconds(10)) {
        guard process > 0 else { return }
        if signal != 0 { kill(process, signal) }
        let deadline = SystemTime().bootTime + limit
        var status: Int32 = 0
        while waitpid(process, &status, WNOHANG) == 0 {
            if SystemTime().bootTime > deadline { kill(process, SIGKILL) }
            usleep(20_000)
        }
    }
}
