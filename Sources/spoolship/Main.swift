//  spoolship: the command line. One table of commands drives parsing, help, suggestions, completions and manual pages;
//  each command is one file in Commands/ and one line in the table. What a command does happens in the modules: it
//  knows nothing of how they work inside.

internal import CLinux
internal import Glibc

/// The program. Not async: nothing runs on Swift's default executor.
@main
enum Main {
    static func main() {
        waitForReloads()
        clinux_bound_memory()
        // A write beyond a limit (`ulimit -f`) fails like any other, and its file is removed.
        signal(SIGXFSZ, SIG_IGN)
        takeStandardDescriptors()
        // Whoever may set it could read what TLS hides; libcurl and OpenSSL look for it.
        unsetenv("SSLKEYLOGFILE")
        refuseWhatIsNoText()
        let code = CommandLineTool(console: .standard, ownsProcess: true).run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }

    /// A reload may be asked for before the agent is there to hear it: it waits until then, instead of ending the process.
    private static func waitForReloads() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.contains("run"), !arguments.contains("--once") else { return }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGHUP)
        // It fails for no signal that there is.
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Ends where an argument is not UTF-8: read as text it would be another one, and an event would say what nobody wrote.
    private static func refuseWhatIsNoText() {
        for number in 0..<Int(CommandLine.argc) {
            guard let word = CommandLine.unsafeArgv[number] else { continue }
            let bytes = UnsafeBufferPointer(start: word, count: strlen(word)).map { UInt8(bitPattern: $0) }
            guard String(validating: bytes, as: UTF8.self) == nil else { continue }
            Console.standard.printError("spoolship: argument \(number) is not UTF-8")
            exit(ExitCode.usage.rawValue)
        }
    }

    /// Opens what a caller has closed of 0, 1 and 2: the next file would get that number, and messages would go into it.
    private static func takeStandardDescriptors() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // The lowest free number is this one.
            _ = open("/dev/null", O_RDWR)
        }
    }
}
