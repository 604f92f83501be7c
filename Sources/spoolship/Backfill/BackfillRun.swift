internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool

/// Ships old files through an agent, piece by piece over its control socket, and shows the progress.
///
/// With each piece the agent durably stores where the piece ends. If this program ends early, for whatever
/// reason, the next run asks for that place and continues there: no event is lost or sent twice.
struct BackfillRun: Sendable {
    /// Where progress and results are shown.
    let console: Console
    /// The paths as given on the command line.
    let files: [String]
    /// The app of the events.
    let app: String
    /// The agent: the running one, or the one that this process runs for the backfill.
    let client: ControlClient
    /// When to give up if the agent takes nothing; nil for never.
    let deadline: BootInstant?
    /// Whether the agent runs only for this backfill. Then all events must be sent before it ends, because
    /// no other agent would send them afterwards.
    let isOwnAgent: Bool
    /// The configured limit for an event, in bytes: larger lines are quarantined.
    let maxEventSize: Int

    private let time = SystemTime()

    /// The state of a run over all files.
    private struct Course {
        /// The progress that is shown.
        var progress: BackfillProgress
        /// The line that shows the progress.
        var line: ProgressLine
        /// The size of the files that are done, in bytes.
        var before: ByteCount = 0
        /// How many lines were read.
        var read = 0
        /// How many lines the agent did not accept.
        var refused = 0
        /// How many lines the agent quarantined.
        var quarantined = 0

        /// How many lines did not become events.
        var bad: Int { refused + quarantined }

        /// Shows the progress, if it is due.
        mutating func show(at now: BootInstant) throws(CommandFailure) {
            let progress = progress
            try line.show(progress.text(at: now), at: now)
        }
    }

    /// What the agent answers to a piece or to the question how far a file was read.
    private enum Answer {
        /// Accepted, with the agent's answer.
        case taken(JSONValue)
        /// Not now, with the reason: the queue is full, for example. The same piece is offered again.
        case later(String)
        /// Not in one transaction, with the reason: many lines that go to the quarantine need more room than
        /// as many events. Fewer lines are offered.
        case tooLarge(String)
        /// The agent's stored place is not where this piece begins, because another program ships the same
        /// file.
        case elsewhere(String)
    }

    /// Ships all files, one after the other.
    ///
    /// - Parameter opened: files by their paths that were opened while this process was still root.
    /// - Throws: `CommandFailure` with code 65 when lines are not events or were refused, and 75 when
    ///   something cannot be sent.
    func run(_ opened: [String: BackfillFile] = [:]) throws(CommandFailure) {
        var total: ByteCount = 0
        // All files are opened before the first one is shipped, so that a wrong name is found at once.
        for file in files { total += ByteCount(try open(file, opened).size) }
        var course = Course(
            progress: BackfillProgress(total: total.value, at: time.bootTime), line: ProgressLine(console))
        for file in files {
            let file = try open(file, opened)
            do throws(CommandFailure) {
                // After a kill the agent may accept the last piece of the killed program only now, and then
                // the place has moved. Continue once at the new place; a second time would mean that two
                // programs ship the file, and they would take turns for ever.
                if let moved = try take(file, &course), try take(try open(file.path), &course) != nil {
                    throw CommandFailure(.temporaryFailure, moved)
                }
            } catch {
                try course.line.clear()
                throw error
            }
            course.before += ByteCount(file.size)
        }
        try course.line.clear()
        let sent = isOwnAgent ? try drain() : .success
        try report(course, sent)
        if sent != .success || course.bad > 0 { throw CommandFailure(sent != .success ? sent : .badData) }
    }

    /// Prints how many events were accepted and what happens to them, and how many lines were not.
    private func report(_ course: Course, _ sent: ExitCode) throws(CommandFailure) {
        let accepted = course.read - course.bad
        let fate = !isOwnAgent ? "queued; the agent sends them" : sent == .success ? "delivered" : "queued"
        try console.print("\(HumanText.plural(accepted, "event")) \(fate)")
        if course.bad > 0 {
            console.printError(
                "\(HumanText.plural(course.quarantined, "line")) quarantined, "
                    + "\(HumanText.count(course.refused)) refused: `spoolship quarantine list` says why")
        }
    }

    /// Opens a file for reading; root opens it with the rights of the user who can change its path.
    ///
    /// - Throws: `CommandFailure` with code 77 when permission is missing, otherwise 74.
    func open(_ path: String, _ opened: [String: BackfillFile] = [:]) throws(CommandFailure) -> BackfillFile {
        if let file = opened[path] { return file }
        let owners = try relaying(try PathOwners(of: path)) { (error: SystemError) in
            CommandFailure(.inputOutput, "\(path) cannot be read: \(error)")
        }
        guard !owners.users.isEmpty else { return try backfillFile(path, nil, by: nil) }
        if let file = PathOwners.itself(path) { return try backfillFile(path, nil, by: file.raw) }
        let file: Descriptor
        do throws(SystemError) { file = try owners.open() } catch {
            throw unreadable(path, owners, error.number, "\(path) cannot be read: \(error)")
        }
        return try backfillFile(path, owners, by: file.raw)
    }

    private func backfillFile(
        _ path: String, _ owners: PathOwners?, by file: Int32?
    ) throws(CommandFailure) -> BackfillFile {
        try relaying(
            try BackfillFile(path: path, by: file.map { "/proc/self/fd/\($0)" }, maxEventSize: maxEventSize)
        ) { (error: SpoolError) in
            unreadable(path, owners, error.cause?.number, error.description)
        }
    }

    /// The failure to report when a file cannot be opened; says with whose rights, if these were not root's.
    private func unreadable(
        _ path: String, _ owners: PathOwners?, _ number: Int32?, _ words: String
    ) -> CommandFailure {
        guard number == EACCES || number == EPERM else { return CommandFailure(.inputOutput, words) }
        let verb = owners?.users.count == 1 ? "can" : "can each"
        let rights = owners.map { " (with the rights of \($0.names), who \(verb) change where it leads)" }
        return CommandFailure(.noPermission, words + (rights ?? ""))
    }

    /// Ships one file from the place that the agent has stored for it. Returns the agent's message if another
    /// program has shipped a piece meanwhile, nil if the file is done.
    private func take(_ file: BackfillFile, _ course: inout Course) throws(CommandFailure) -> String? {
        guard case .taken(let state) = try ask("GET", file, nil, from: nil) else {
            throw CommandFailure(.software, "the agent does not report how far \(file.path) was read")
        }
        // Where the last accepted piece ended; nil if the agent does not know the file.
        var place = state["place"]?.string
        var size = PieceSize(most: state["piece_bytes"]?.integer ?? 65_536)
        file.format = state["format"]?.string.flatMap(LineWrapper.init)
        file.decode(state["encoding"]?.string.flatMap(FileEncoding.init))
        // A file that was rewritten since is read from its beginning.
        let isSame = try orFail(.inputOutput, try file.begin(at: place))
        let isKnown = isSame && place != nil
        course.progress.skip(file.position)
        let events = course.read
        let bad = course.bad
        while let piece = try orFail(.inputOutput, try file.next(atMost: size.bytes)) {
            let result: JSONValue
            switch try offer(piece, of: file, from: place, &course) {
            case .taken(let taken):
                result = taken
                size.wasTaken()
            case .elsewhere(let words), .later(let words): return words
            case .tooLarge(let words):
                guard holdsSeveralLines(piece), size.wasRefused(piece.bytes.count) else {
                    throw CommandFailure(.badData, words)
                }
                _ = try orFail(.inputOutput, try file.restart(at: place))
                continue
            }
            place = piece.end
            let count = result["read"]?.integer ?? 0
            course.read += count
            course.refused += result["refused"]?.integer ?? 0
            course.quarantined += result["quarantined"]?.integer ?? 0
            let position = course.before + ByteCount(min(file.position, file.size))
            course.progress.reached(position.value, events: count, at: time.bootTime)
            try course.show(at: time.bootTime)
        }
        // Empty parts at the end and lines without events count as done, too.
        course.progress.reached((course.before + ByteCount(file.size)).value, events: 0, at: time.bootTime)
        let taken = course.read - events
        let good = taken - (course.bad - bad)
        let anew = isSame ? "taken" : "was rewritten since it was read, taken anew"
        let done = "was read before, nothing to do; a copy of it is read as a new file"
        let word = isKnown ? taken == 0 ? done : "resumed" : anew
        try course.line.end(
            with: "\(file.path): \(word)\(taken == 0 ? "" : ", \(HumanText.plural(good, "event"))")")
        return nil
    }

    /// Whether a piece can be offered as two smaller ones.
    private func holdsSeveralLines(_ piece: FilePiece) -> Bool {
        piece.problem == nil && piece.bytes.dropLast().contains(UInt8(ascii: "\n"))
    }

    /// Offers one piece until the agent accepts it, or says that the place has moved.
    private func offer(
        _ piece: FilePiece, of file: BackfillFile, from place: String?, _ course: inout Course
    ) throws(CommandFailure) -> Answer {
        while true {
            let answer = try ask("POST", file, piece, from: place)
            if case .elsewhere = answer { return answer }
            // An agent of our own is asked to dispatch with each piece: its interval may be long or off, and
            // a full queue would never become empty.
            if isOwnAgent {
                _ = try request("POST", "/v1/dispatch", [], nil)
            }
            guard case .later(let reason) = answer else {
                course.progress.obstacle = nil
                return answer
            }
            course.progress.obstacle = reason
            try course.show(at: time.bootTime)
            if let deadline, time.bootTime >= deadline {
                throw CommandFailure(
                    .deadline, "time ran out, \(reason); the same command resumes where this one ended")
            }
            // 50 ms: short compared with a dispatch, and few requests.
            usleep(50_000)
        }
    }

    /// The path of a file from the root on. A relative path would be one below the spool, whose quarantined
    /// lines are retried by other settings.
    private static func wholePath(of file: BackfillFile) -> String {
        guard !file.path.hasPrefix("/"), let directory = RealPath.ofExisting(".") else { return file.path }
        return "\(directory)/\(file.path)"
    }

    /// Asks the agent how far a file was read (GET), or offers it a piece (POST).
    ///
    /// - Parameters:
    ///   - piece: the piece; nil for the question.
    ///   - place: where the piece begins according to the agent; nil for the beginning of a file that it does
    ///     not know.
    private func ask(
        _ method: String, _ file: BackfillFile, _ piece: FilePiece?, from place: String?
    ) throws(CommandFailure) -> Answer {
        var query = [("key", file.key), ("app", app)]
        if let piece {
            let path = BackfillRun.wholePath(of: file)
            query.append(("file", String(decoding: path.utf8.suffix(1024), as: UTF8.self)))
            query += [("offset", "\(piece.offset)"), ("end", piece.end)]
            if let place {
                query.append(("from", place))
            }
            if let problem = piece.problem {
                query += [("reason", problem.reason.rawValue), ("detail", problem.detail)]
                query.append(("length", "\(problem.length)"))
            }
        }
        let (status, json) = try request(method, "/v1/backfill", query, piece?.bytes)
        guard status >= 300 else { return .taken(json) }
        let message = json["error"]?["message"]?.string ?? "the agent refuses without saying why"
        switch json["error"]?["code"]?.string {
        case "later": return .later(message)
        case "elsewhere": return .elsewhere(message)
        case "too_large": return .tooLarge(message)
        case "not_found":
            throw CommandFailure(.unreachable, "the running agent is too old for this; restart it")
        default: throw CommandFailure(status == 400 || status == 413 ? .badData : .temporaryFailure, message)
        }
    }

    /// Sends a request to the agent. An agent that is gone is a temporary failure: the same command continues
    /// later.
    private func request(
        _ method: String, _ path: String, _ query: [(String, String)], _ content: [UInt8]?
    ) throws(CommandFailure) -> (status: Int, json: JSONValue) {
        do throws(ControlError) {
            var patient = client
            // The events of a piece can wait for functions of containers, one after the other: 10 minutes.
            if content != nil {
                patient.timeout = .seconds(600)
            }
            let answer = try patient.request(method, path, query: query, content: content)
            return (answer.status, try answer.json())
        } catch {
            throw CommandFailure(
                .temporaryFailure,
                "the agent has ended (\(error.message)); the same command resumes where this one ended")
        }
    }

    /// Lets an agent of our own send what is left, and returns the exit code: 0 if everything was sent.
    /// Without a deadline it has a day.
    private func drain() throws(CommandFailure) -> ExitCode {
        let left = deadline.map { max(.zero, $0 - time.bootTime) } ?? .seconds(86_400)
        var patient = client
        patient.timeout = left + .seconds(10)
        let answer = try relaying(
            try patient.request("POST", "/v1/drain", body: ["timeout_ms": .integer(left.wholeMilliseconds)])
        ) { (_: ControlError) in
            CommandFailure(.temporaryFailure, "the agent has ended; the next one sends the queued events")
        }
        // The last line of the answer has the result; those before are reports.
        let last = answer.body.split(separator: UInt8(ascii: "\n")).last.map { Array($0) } ?? []
        // A signal ends the agent's answer between two reports, without a result.
        guard let result = try? JSONValue(parsing: last), let number = result["exit_code"]?.integer else {
            throw CommandFailure(
                .temporaryFailure, "the agent has ended; the next agent sends the events that still wait")
        }
        let code = ExitCode(rawValue: Int32(clamping: number)) ?? .temporaryFailure
        guard code != .success else { return .success }
        let waiting = try waiting()
        for obstacle in result["obstacles"]?.members ?? [] {
            let count = waiting[obstacle.key].map { ", \(HumanText.count($0)) waiting" } ?? ""
            console.printError("\(obstacle.key): \(obstacle.value.string ?? "cannot go")\(count)")
        }
        console.printError("the next agent sends the events that still wait")
        return code
    }

    /// How many events wait in the queue for each destination.
    private func waiting() throws(CommandFailure) -> [String: Int] {
        let destinations = try request("GET", "/v1/status", [], nil).json["destinations"]?.array ?? []
        return Dictionary(destinations.map { ($0["name"]?.string ?? "", $0.sum("queued")) }) { $1 }
    }
}
