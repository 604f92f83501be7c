public import Configuration
public import EventLoops
internal import Events
internal import Glibc
internal import Intake
internal import Logs
internal import Model
internal import Spool

/// What would become of the lines of a file, without an agent and without containers: for `check --sample`.
public struct LineSample: Sendable {
    /// What happens to a line.
    public enum Fate: String, Sendable {
        /// An object with a name.
        case event
        /// Any other object, or a text.
        case record
        /// Older than any destination wants it.
        case expired
        /// No event: a push to the containers' data layer.
        case dataLayer = "data_layer"
        /// It would be kept in quarantine.
        case quarantined
    }

    /// A line, or several that belong together.
    public struct Line: Sendable {
        /// Its number in the file, from 1.
        public let number: Int
        package let fate: Fate
        /// The event's or record's name.
        public var name = ""
        /// Its time as RFC 3339.
        public var time = ""
        /// The member that says the time; nil: it is that of reading.
        public var timeMember: String?
        /// How serious it is, and the member that says so.
        public var level: (level: String, member: String)?
        /// Why it would be quarantined.
        public var problem: String?
    }

    package let app: String
    /// Whether the configuration reads the file: by a pattern of `read`, or because it is in the spool.
    public let isRead: Bool
    package private(set) var lines: [Line] = []
    /// The members that are added to the first record or event.
    public private(set) var added: [String] = []
    /// How many bytes the accepted lines have, and how many of them leave.
    public private(set) var bytes = (read: 0, written: 0)

    /// The longest file that is looked at, in bytes.
    public static let longest = 64 << 20

    /// Reads a file, by its absolute path; one that the configuration does not read, as if `[apps.NAME] read` named it.
    /// Throws a message for a person where it cannot be read, or is too long.
    public init(of path: String, _ settings: Settings, version: String) throws(AgentError) {
        let time = SystemTime()
        let own = ReadPlace.of(app: "", [path])?.first
        let place = settings.places.first { place in own.map { place.meets($0) } ?? false }
        let spool = settings.spool.directory + "/"
        let isSpool = place == nil && path.hasPrefix(spool)
        let parts = isSpool ? path.dropFirst(spool.count).split(separator: "/") : []
        app = place?.app ?? (parts.count > 1 ? String(parts[0]) : isSpool ? "default" : "sample")
        isRead = place != nil || isSpool
        var bytes: [UInt8]
        do throws(SystemError) {
            guard let whole = try WholeFile.bytes(of: path, atMost: LineSample.longest) else {
                throw SystemError("read", number: EFBIG)
            }
            bytes = whole
        } catch {
            throw AgentError(.io, "\(path) cannot be read: \(error); up to \(LineSample.longest >> 20) MiB are read")
        }
        if bytes.last != 0x0A { bytes.append(0x0A) }

        let host = HostFacts(settings, version: version, log: Log(NoLog()), keepsID: false)
        var intake = settings.intakeSettings(cap: settings.queue.maxSize, isCollecting: true, country: nil, host: host)
        if !isRead {
            intake.events.defaults.kind = .log
            intake.events.defaults.text = .lines
        }
        if !isSpool { intake = settings.forPlaces(intake) }
        var random = KernelRandom()
        var pass = EventPass(options: intake.events)
        let source = pass.source(app: app, using: &random)
        pass.begin(source, path: path, at: time.wallTime, isSynchronised: true, using: &random)
        bytes.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return }
            var (position, number) = (0, 1)
            while position < block.count {
                let verdict = pass.read(base, from: position, to: block.count)
                let piece = block[position..<verdict.next]
                if let line = line(verdict, number, piece, &pass, most: settings.spool.maxEventSize) {
                    lines.append(line)
                }
                number += piece.count { $0 == 0x0A }
                position = verdict.next
            }
        }
    }

    private mutating func line(
        _ verdict: Verdict, _ number: Int, _ bytes: Slice<UnsafeBufferPointer<UInt8>>, _ pass: inout EventPass,
        most: Int
    ) -> Line? {
        guard bytes.count - 1 <= most else {
            let problem = "too_long: \(bytes.count - 1) bytes, \(most) are allowed (spool.max_event_size)"
            return Line(number: number, fate: .quarantined, problem: problem)
        }
        switch verdict.kind {
        case .blank: return nil
        case .expired: return Line(number: number, fate: .expired)
        case .dataLayer: return Line(number: number, fate: .dataLayer)
        case .quarantined, .refused:
            let problem = pass.problem.map { "\($0.reason.rawValue): \($0.detail)" }
            return Line(number: number, fate: .quarantined, problem: problem)
        case .accepted:
            var line = Line(number: number, fate: pass.isRecord ? .record : .event)
            line.name = String(decoding: pass.name, as: UTF8.self)
            line.time = "\(verdict.eventTime)"
            let found = pass.findings()
            line.timeMember = found.timeMember
            if let level = found.level, let member = found.levelMember { line.level = (level.rawValue, member) }
            var buffer = LineBuffer(capacity: bytes.count + 1024)
            pass.write(into: &buffer)
            self.bytes.read += bytes.count
            self.bytes.written += buffer.count
            if added.isEmpty {
                added = LineSample.names(Array(buffer.bytes)).filter { !LineSample.names(Array(bytes)).contains($0) }
            }
            return line
        }
    }

    private static func names(_ line: [UInt8]) -> [String] {
        guard case .object(let members)? = try? JSONValue(parsing: line) else { return [] }
        return members.map(\.key)
    }
}
