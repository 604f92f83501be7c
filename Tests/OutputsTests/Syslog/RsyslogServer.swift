import EventLoops
import Glibc
import Receiver
import Synchronization
import TestKit
import Testing

@testable import Outputs

/// Debian's rsyslogd as a child of the tests, on loopback; it can be killed, stopped and started again.
final class RsyslogServer: Sendable {
    let port: UInt16
    private let directory: String
    private let child = Mutex<pid_t>(0)

    /// A message as the server understood it.
    struct Stored: Equatable {
        var priority: String
        var time: String
        var host: String
        var app: String
        var id: String
        var structuredData: String
        var message: String
    }

    /// - Parameter tls: whether it speaks TLS, with a certificate of the bench's authority.
    init(_ bench: Bench, tls: Bool) async throws {
        directory = "\(bench.directory.path)/rsyslog"
        try #require(mkdir(directory, 0o755) == 0)
        port = UInt16(try freePort())
        let identity = try bench.identity()
        try PrivateFile.replace("\(directory)/server.pem", with: identity.certificate)
        try PrivateFile.replace("\(directory)/server.key", with: identity.key)
        let fields = [
            "pri", "timereported:::date-rfc3339", "hostname", "app-name", "msgid", "structured-data", "msg",
        ]
        let driver = #"StreamDriver.Name="ossl" StreamDriver.Mode="1" StreamDriver.AuthMode="anon""#
        let text = """
            global(workDirectory="\(directory)" maxMessageSize="64k" defaultNetstreamDriverCAFile="\(bench.caFile)"
                defaultNetstreamDriverCertFile="\(directory)/server.pem" defaultNetstreamDriverKeyFile="\(directory)/server.key"
                parser.escapeControlCharactersOnReceive="off")
            module(load="imtcp" \(tls ? driver : ""))
            input(type="imtcp" address="127.0.0.1" port="\(port)")
            template(name="all" type="string" string="\(fields.map { "%\($0)%" }.joined(separator: "\u{1}"))\u{2}")
            action(type="omfile" file="\(directory)/out" template="all")

            """
        try PrivateFile.replace("\(directory)/conf", with: text)
        try await start()
    }

    deinit { end(SIGKILL) }

    var place: String { "127.0.0.1:\(port)" }

    /// What it has written, in that order.
    var stored: [Stored] {
        text(of: "\(directory)/out").split(separator: "\u{2}").compactMap { record in
            let fields = record.split(separator: "\u{1}", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 7 else { return nil }
            return Stored(
                priority: fields[0], time: fields[1], host: fields[2], app: fields[3], id: fields[4],
                structuredData: fields[5], message: fields[6])
        }
    }

    func start() async throws {
        let words = ["/usr/sbin/rsyslogd", "-n", "-f", "\(directory)/conf", "-i", "\(directory)/pid"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid = pid_t()
        try #require(posix_spawn(&pid, words[0], nil, nil, &arguments, environ) == 0, "no \(words[0])")
        child.withLock { $0 = pid }
        try #require(await eventually { isListening }, "rsyslogd did not start")
    }

    /// Ends it, and waits for that.
    func end(_ signal: Int32) {
        child.withLock { child in
            guard child > 0 else { return }
            kill(child, signal)
            waitpid(child, nil, 0)
            child = 0
            unlink("\(directory)/pid")
        }
    }

    private var isListening: Bool {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(raw) }
        var address = NATSServer.loopback(port)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
