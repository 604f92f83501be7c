public import Configuration
public import EventLoops
internal import Events
internal import Glibc
internal import Intake
internal import Logs
internal import Model
internal import Schemas
internal import Spool
internal import TextFormats

/// What the agent would do with the lines of a file, worked out without an agent: for `check --sample`. Of
/// containers only the schemas of their default files are known.
public struct LineSample: Sendable {
    /// What happens to a line.
    public enum Fate: String, Sendable {
        /// An object with a name.
        case event
        /// An object without a name, or text.
        case record
        /// Older than `max_age` of every destination.
        case expired
        /// A push to the containers' data layer, which is not an event.
        case dataLayer = "data_layer"
        /// Not accepted: the line would go to the quarantine.
        case quarantined
    }

    /// A line, or several lines that form one record.
    public struct Line: Sendable {
        /// Number of its first line in the file, from 1.
        public let number: Int
        /// What happens to the line.
        package let fate: Fate
        /// The event's or record's name.
        public var name = ""
        /// The event's time in the format of RFC 3339.
        public var time = ""
        /// The member that the time was read from; nil if the time is that of reading.
        public var timeMember: String?
        /// The severity, and the member that it was read from.
        public var level: (level: String, member: String)?
        /// Why the line would be quarantined.
        public var problem: String?
        /// What its schema does not allow, though it is sent (`schemas.mode = "report"`).
        public var schemaProblem: String?
        /// The event as the agent accepts it, before rules; nil if it is not accepted. `RuleSample` applies
        /// the rules to it.
        var event: (line: [UInt8], priority: Priority, time: Timestamp)?
    }

    /// Results for lines of text.
    public struct Texts: Sendable {
        /// Name of the app's format; nil if none is set.
        public var format: String?
        /// True if the format is a pattern without an anchor: RE2 then tries to match at each byte of a line.
        public var isSlow = false
        /// Number of records that match the format.
        public var parsed = 0
        /// Number of records that do not match the format.
        public var notParsed = 0
        /// The first line that does not match the format, and the column from which it does not.
        public var firstFailure: (line: Int, column: Int, expected: String)?
        /// Number of lines that begin with `{` and are not valid JSON.
        public var brokenJSON = 0
        /// The built-in format that the lines resemble, or what a container's runtime has wrapped in them, if
        /// no format is set; with the number of records that match it and the number that were tried.
        public var guess: (name: String, matched: Int, records: Int)?
        /// The value of `format` for the container's runtime that has wrapped the lines, if none is set.
        public var wrapper: String?
        /// True if no format is set, and most lines are neither objects nor of a built-in format.
        public var isUnknown = false
    }

    /// The app that the file belongs to: `default` for a file directly in the spool, `sample` if the
    /// configuration does not read the file.
    package let app: String
    private let schemas: SchemaRules
    /// Containers whose published documents may have schemas that are not known here.
    public let containersWithoutDocument: [String]
    /// The file's path as conditions of rules see it: relative for the spool, else absolute.
    let file: String
    /// True if lines are records, which only the schema of `log` judges, and there are schemas of others: as
    /// events the lines could be judged by these.
    public private(set) var isWithoutSchemas = false
    /// Results for lines of text.
    public private(set) var texts = Texts()
    /// True if the configuration reads the file: a pattern of `read` matches it, or it is in the spool.
    public let isRead: Bool
    /// The lines in the order of the file, without blank ones.
    package private(set) var lines: [Line] = []
    /// The members that the agent adds to the first record or event.
    public private(set) var added: [String] = []
    /// Size of the accepted lines as read and as written, in bytes.
    public private(set) var bytes = (read: 0, written: 0)

    /// The longest file that is accepted, 64 MiB: the file is read into memory as a whole.
    public static let longest = 64 << 20

    /// Reads a file. A file that the configuration does not read is treated as if `[apps.NAME] read` named
    /// it.
    ///
    /// - Parameter path: an absolute path.
    /// - Throws: `AgentError` with a message for a person if the file is too long or cannot be read.
    public init(of path: String, _ settings: Settings, version: String) throws(AgentError) {
        let time = SystemTime()
        let own = ReadPlace.of(file: path)
        let place = settings.places.first { place in own.map { place.meets($0) } ?? false }
        let spool = settings.spool.directory + "/"
        let isSpool = place == nil && path.hasPrefix(spool)
        let parts = isSpool ? path.dropFirst(spool.count).split(separator: "/") : []
        app = place?.app ?? (parts.count > 1 ? String(parts[0]) : isSpool ? "default" : "sample")
        isRead = place != nil || isSpool
        file = isSpool ? String(path.dropFirst(spool.count)) : path
        var bytes: [UInt8]
        do throws(SystemError) {
            guard let whole = try WholeFile.bytes(of: path, atMost: LineSample.longest) else {
                throw SystemError("read", number: EFBIG)
            }
            bytes = whole
        } catch {
            throw AgentError(
                .io, "\(path) cannot be read: \(error); up to \(LineSample.longest >> 20) MiB are read")
        }
        if !isSpool {
            bytes = FileText.decoded(bytes, place.flatMap { settings.apps[$0.app]?.encoding })
        }
        if bytes.last != 0x0A {
            bytes.append(0x0A)
        }

        let host = HostFacts(settings, version: version, log: Log(NoLog()), keepsID: false)
        var intake = settings.intakeSettings(
            cap: settings.queue.maxSize, isCollecting: true, country: nil, host: host)
        if !isRead {
            intake.events.defaults.kind = .log
            intake.events.defaults.text = .lines
        }
        if !isSpool {
            intake = settings.forPlaces(intake)
        }
        schemas = try settings.schemasForSample()
        containersWithoutDocument = settings.containers.filter { $0.url != nil }.map(\.id)
        var random = KernelRandom()
        var pass = EventPass(options: intake.events)
        let source = pass.source(app: app, using: &random)
        pass.begin(source, path: path, at: time.wallTime, isSynchronised: true, using: &random)
        let format = settings.apps[app]?.textFormat.format
        texts.format = format?.name
        texts.isSlow = format?.isUnanchoredPattern ?? false
        // Lines that begin as objects do count for it, others against it.
        var objects = 0
        var sent = 0
        bytes.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return }
            var position = 0
            var number = 1
            while position < block.count {
                let verdict = pass.read(base, from: position, to: block.count)
                let piece = block[position..<verdict.next]
                noteText(pass.counts, number)
                let isObject = LineSample.first(of: piece) == UInt8(ascii: "{")
                if let line = line(verdict, number, piece, &pass, most: settings.spool.maxEventSize) {
                    lines.append(line)
                    objects += isObject ? 1 : -1
                    // Only what is sent is text without fields.
                    sent += isObject || line.fate != .record ? 0 : 1
                }
                number += piece.count { $0 == 0x0A }
                position = verdict.next
            }
        }
        isWithoutSchemas =
            lines.contains { $0.fate == .record } && schemas.set.schemas.contains { $0.name != "log" }
        if texts.format == nil {
            let wrapper = place.flatMap { settings.apps[$0.app]?.format }
            guessFormat(
                bytes, wrappedBy: wrapper, isSpool: isSpool, areObjects: objects >= 0, isTextSent: sent > 0)
        }
    }

    /// Guesses what an app without `parse` should set for its lines.
    ///
    /// - Parameters:
    ///   - known: the wrapper that the app's `format` names; nil if it is to be guessed, too.
    ///   - areObjects: whether at least half of the lines are objects. One line does not tell: a program may
    ///     print a banner before its first object.
    ///   - isTextSent: whether text is sent: not if all of it is quarantined.
    private mutating func guessFormat(
        _ bytes: [UInt8], wrappedBy known: LineWrapper?, isSpool: Bool, areObjects: Bool, isTextSent: Bool
    ) {
        let found = known == nil && !isSpool ? bytes.withUnsafeBytes { LineWrapper.guess($0) } : nil
        texts.wrapper = found?.rawValue
        if let wrapper = known ?? found {
            let inner = bytes.withUnsafeBytes { wrapper.unwrapped($0, most: FormatGuess.mostLines) }
            if !LineSample.areObjects(inner) {
                guess(inner)
            }
        } else if !areObjects {
            guess(bytes)
            texts.isUnknown = texts.guess == nil && !isSpool && isTextSent
        }
    }

    /// Guesses the format of lines that are not wrapped.
    private mutating func guess(_ lines: [UInt8]) {
        texts.guess = lines.withUnsafeBytes { FormatGuess.of($0) }.map { ($0.name, $0.matched, $0.records) }
    }

    /// Whether at least half of the lines begin as objects do.
    private static func areObjects(_ text: [UInt8]) -> Bool {
        let lines = text.split(separator: 0x0A)
        let objects = lines.count { line in line.first { $0 > 0x20 } == UInt8(ascii: "{") }
        return objects * 2 >= lines.count
    }

    /// Takes over what the pass has counted so far of lines of text.
    private mutating func noteText(_ counts: EventCounts, _ line: Int) {
        let found = counts.texts[app]
        if texts.firstFailure == nil, let last = found?.last {
            texts.firstFailure = (line, last.column, last.expected)
        }
        texts.parsed = counts.parsed
        texts.notParsed = found?.notParsed ?? 0
        texts.brokenJSON = found?.brokenJSON ?? 0
    }

    /// What becomes of a line that the pass has just read; nil for a blank line.
    private mutating func line(
        _ verdict: Verdict, _ number: Int, _ bytes: Slice<UnsafeBufferPointer<UInt8>>,
        _ pass: inout EventPass,
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
            if let index = schemas.set.table(of: app).index(of: pass.name),
                let failure = schemas.set.schemas[index].failure(in: pass.object)
            {
                guard schemas.isReport else {
                    let problem = "schema: \(schemas.set.schemas[index].title): \(failure.description)"
                    return Line(number: number, fate: .quarantined, problem: problem)
                }
                line.schemaProblem = failure.description
            }
            line.time = "\(verdict.eventTime)"
            let found = pass.findings()
            line.timeMember = found.timeMember
            if let level = found.level, let member = found.levelMember {
                line.level = (level.rawValue, member)
            }
            var buffer = LineBuffer(capacity: bytes.count + 1024)
            pass.write(into: &buffer)
            line.event = (Array(buffer.bytes), verdict.priority, verdict.eventTime)
            self.bytes.read += bytes.count
            self.bytes.written += buffer.count
            if added.isEmpty {
                added = LineSample.names(Array(buffer.bytes)).filter {
                    !LineSample.names(Array(bytes)).contains($0)
                }
            }
            return line
        }
    }

    /// The first byte of a line behind blanks and a byte order mark; nil for a blank line.
    private static func first(of line: Slice<UnsafeBufferPointer<UInt8>>) -> UInt8? {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        return line.dropFirst(line.starts(with: mark) ? mark.count : 0).first { $0 > 0x20 }
    }

    /// The names of an object's members; empty for anything else.
    private static func names(_ line: [UInt8]) -> [String] {
        guard case .object(let members)? = try? JSONValue(parsing: line) else { return [] }
        return members.map(\.key)
    }
}
