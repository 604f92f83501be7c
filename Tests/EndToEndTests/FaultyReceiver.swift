import EventLoops
import Glibc
import Receiver
import TestKit
import Testing

/// Certificates of a test's own: an authority, and what it certifies, as files.
final class Certificates {
    private let authority: CertificateAuthority
    let caFile: String

    /// - Parameter name: tells several authorities apart.
    init(in path: String, name: String = "authority") throws {
        authority = try CertificateAuthority(now: SystemTime().wallTime, commonName: name)
        caFile = "\(path)/\(name).pem"
        try write(authority.certificate, to: caFile)
    }

    var caText: String { authority.certificate }

    /// Writes a certificate and its key to `FILE.pem` and `FILE.key`, each replaced at once as a renewal does.
    func issue(
        _ file: String, names: [String] = ["DNS:localhost", "IP:127.0.0.1"], from: Duration = .seconds(-3600),
        until: Duration = .seconds(86_400), isClient: Bool = false
    ) throws {
        let now = SystemTime().wallTime
        let made = try authority.issue(
            .init(names: names, notBefore: now + from, notAfter: now + until, isClient: isClient))
        try PrivateFile.replace("\(file).key", with: made.key)
        try PrivateFile.replace("\(file).pem", with: made.certificate)
    }
}

/// `Fixtures/peer.py`: a receiver over TLS that misbehaves by a script and stores each Idempotency-Key once.
final class FaultyReceiver {
    let port: Int
    private let program: RunningProgram

    /// - Parameters:
    ///   - certificate: `FILE` of `FILE.pem` and `FILE.key`, read again for every connection.
    ///   - store: what it stores, an event a line.
    init(
        in path: String, address: String = "127.0.0.1", port: Int? = nil, certificate: String, store: String,
        faults: [String] = [], under wrapper: [String] = []
    ) throws {
        self.port = try port ?? freePort()
        let script =
            "/" + #filePath.split(separator: "/").dropLast().joined(separator: "/") + "/Fixtures/peer.py"
        let words =
            wrapper + [
                "python3", script, address, "\(self.port)", "\(certificate).pem", "\(certificate).key", store,
            ]
        // What an earlier one has printed says nothing of this one.
        unlink("\(path)/peer-\(address).log")
        program = try RunningProgram(
            words[0], words.dropFirst() + faults, output: "\(path)/peer-\(address).log")
        try wait(.seconds(30), "the scripted receiver") { printed.contains("listening") }
    }

    deinit { program.kill9() }

    /// A line for each request: what was asked, its key, its length, and the fault.
    var printed: String { program.printed }

    /// How many requests ended in that way.
    func count(_ fault: String) -> Int { printed.split(separator: "\n").count { $0.hasSuffix(" \(fault)") } }
}
