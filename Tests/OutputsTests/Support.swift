import EventLoops
import Frames
import Glibc
import Logs
import Model
import Outputs
import Receiver
import Synchronization
import TestKit
import Testing

/// A loop with an authority that this suite's servers are certified by.
struct Bench {
    let loop: EventLoop
    let directory: TemporaryDirectory
    let authority: CertificateAuthority
    let log = KeptLog()

    init() throws {
        loop = try EventLoop(name: "outputs")
        try loop.start()
        directory = try TemporaryDirectory()
        authority = try CertificateAuthority(now: SystemTime().wallTime)
        try PrivateFile.replace(caFile, with: authority.certificate)
    }

    var caFile: String { "\(directory.path)/ca.pem" }

    func identity(
        names: [String] = ["DNS:localhost", "IP:127.0.0.1"], from: Duration = .seconds(-3600),
        until: Duration = .seconds(86_400), isClient: Bool = false
    ) throws -> CertificateAuthority.Identity {
        let now = SystemTime().wallTime
        return try authority.issue(
            .init(names: names, notBefore: now + from, notAfter: now + until, isClient: isClient))
    }

    func receiver(_ change: (inout ReceiverOptions) -> Void = { _ in }) throws -> DevelopmentReceiver {
        var options = ReceiverOptions()
        options.identity = try identity()
        options.threads = 1
        change(&options)
        return try DevelopmentReceiver(options)
    }

    func output(
        to url: String, format: any BatchEncoder = NDJSONEncoder(), stall: Duration? = nil,
        heedsEnvironment: Bool = false,
        _ change: (inout DestinationSettings) -> Void = { _ in }
    ) throws -> HTTPOutput {
        var options = HTTPOptions(url: url)
        options.settings.tls.caFile = caFile
        options.stallTimeout = stall
        options.heedsEnvironment = heedsEnvironment
        change(&options.settings)
        return try HTTPOutput("main", options, format: format, on: loop, log: Log(log), time: Sample.Time())
    }
}

extension DestinationSettings {
    /// A subject `events.web` at some servers.
    init(nats servers: [String]) {
        self.init()
        nats.subject = "events.web"
        url = servers.first.flatMap { EndpointURL($0) }
        nats.servers = servers.dropFirst().compactMap { EndpointURL($0) }
    }

    /// A topic `events` at some brokers.
    init(kafka brokers: [String], tls: Bool = true) {
        self.init()
        kafka.topic = "events"
        kafka.brokers = brokers
        kafka.tls = tls
    }

    /// Shows who the agent is by a user's password.
    mutating func logIn(_ user: String, _ source: SecretSource) {
        self.user = user
        password = SecretSetting(source)
    }
}

extension KafkaOptions {
    init(_ settings: DestinationSettings) { self.init(settings, settings.kafka) }
}

extension NATSOptions {
    init(_ settings: DestinationSettings) { self.init(settings, settings.nats) }
}

extension SecretSetting {
    init(_ source: SecretSource) {
        self.init()
        switch source {
        case .inline(let secret): inline = secret
        case .file(let path): file = path
        case .credential(let name): credential = name
        }
    }
}

/// Batches of numbered events.
enum Sample {
    /// When each batch is accepted: 2026-11-20T10:00:00Z.
    static let accepted = Timestamp(milliseconds: 1_795_168_800_000)

    /// A clock that is in the minute in which the batches are accepted, whatever day the machine has; waits are real.
    struct Time: TimeSource {
        var bootTime: BootInstant { SystemTime().bootTime }
        var wallTime: Timestamp { Sample.accepted + .seconds(1) }
    }

    static func lines(_ numbers: Range<Int>) -> [UInt8] {
        Array(numbers.map { #"{"name":"Video clicked","n":\#($0)}"# + "\n" }.joined().utf8)
    }

    static func part(_ numbers: Range<Int>, _ compression: Compression, events: Range<Int>? = nil) throws
        -> Batch.Part
    {
        let bytes = lines(numbers)
        return Batch.Part(
            compression: compression, frame: try FrameCompressor(compression).compress(bytes),
            bytes: bytes.count,
            eventsInFrame: numbers.count, events: events ?? 0..<numbers.count)
    }

    static func batch(_ parts: [Batch.Part], id: BatchID = BatchID(high: 0x0193_0000_0000_7000, low: 1))
        -> Batch
    {
        return Batch(
            header: BatchHeader(
                id: id, destination: "main", priority: .normal,
                events: parts.reduce(0) { $0 + $1.events.count },
                bytes: parts.reduce(0) { $0 + $1.bytes }, acceptedAt: accepted, firstEventTime: accepted),
            parts: parts)
    }

    static func batch(_ count: Int, number: UInt64 = 1) throws -> Batch {
        batch([try part(0..<count, .gzip)], id: BatchID(high: 0x0193_0000_0000_7000, low: number))
    }
}

/// The whole of a file as text.
func text(of path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = read(file, &buffer, buffer.count)
        guard count > 0 else { break }
        bytes.append(contentsOf: buffer[..<count])
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// What a script has seen, from any thread.
final class Seen: Sendable {
    private let texts = Mutex<[String]>([])
    func note(_ text: String) { texts.withLock { $0.append(text) } }
    var all: [String] { texts.withLock { $0 } }
    var last: String { all.last ?? "" }
}

extension MeasuredOutput {
    /// When certificates expire, as of the last look.
    var certificates: OutputCertificates { measures.certificates }

    /// The bytes that were handed over since this was last asked.
    func takeSentBytes() -> Int {
        defer { measures.sentBytes = 0 }
        return measures.sentBytes
    }

    /// How many values were left out or changed since this was last asked.
    func takeLeftOutValues() -> Int {
        defer { measures.leftOutValues = 0 }
        return measures.leftOutValues
    }
}
