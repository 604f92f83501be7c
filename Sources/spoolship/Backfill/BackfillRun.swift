internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool

/// Gives old files to an agent piece by piece, over its control socket, and shows how far it has come.
///
/// The agent remembers with each piece where it ends: whatever ends this program, the next one goes on there.
struct BackfillRun: Sendable {
    let console: Console
    let files: [String]
    let app: String
    let client: ControlClient
    /// When to give up; nil: never.
    let deadline: BootInstant?
    /// Whether the agent runs for this alone: then all must be sent before it ends.
    let isOwnAgent: Bool
    let maxEventSize: Int

    private let time = SystemTime()

    private struct Course {
        var progress: BackfillProgress
        var line: ProgressLine
        /// The size of the files that are done with.
        var before: ByteCount = 0
        /// Events that were read, and of them those that were not accepted.
        var read = 0
        var refused = 0
        var quarantined = 0

        var bad: Int { refused + quarantined }

        mutating func show(at now: BootInstant) throws(CommandFailure) {
            let progress = progress
            try line.show(progress.text(at: now), at: now)
        }
    }

    private enum Answer {
        case taken(JSONValue)
        case later(String)
        /// The file has been taken to another place than the one that was known.
        case elsewhere(String)
    }

    /// Takes all files, one after the other.
    ///
    /// - Parameter opened: files by their paths, from a time when this process might read more.
    /// - Throws: `CommandFailure`: 65 when some lines are not events or were refused, 75 when something cannot be sent.
    func run(_ opened: [String: BackfillFile] = [:]) throws(CommandFailure) {
        var total: ByteCount = 0
        // Looked at before the first is taken: a name with a mistake is found at once.
        for file in files { total += ByteCount(try open(file, opened).size) }
        var course = Course(
            progress: BackfillProgress(total: total.value, at: time.bootTime), line: ProgressLine(console))
        for file in files {
            let file = try open(file, opened)
            do throws(CommandFailure) {
                // The last piece of a command that was killed may be taken only now: then it goes on behind that. Once,
                // because two that read the same file would go on like that.
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

    private func report(_ course: Course, _ sent: ExitCode) throws(CommandFailure) {
        let accepted = course.read - course.bad
        let fate = !isOwnAgent ? "queued; the agent sends them" : sent == .success ? "delivered" : "queued"
        try console.print("\(HumanText.plural(accepted, "event")) \(fate)")
        if course.bad > 0 {
            console.printError(
                "\(HumanText.plural(course.quarantined, "line")) quarantined, \(HumanText.count(course.refused)) refused:"
                    + " `spoolship quarantine list` says why")
        }
    }

    func open(_ path: String, _ opened: [String: BackfillFile] = [:]) throws(CommandFailure) -> BackfillFile {
        if let file = opened[path] { return file }
        let owner = try relaying(try PathOwner(of: path)) { (error: SystemError) in
            CommandFailure(.inputOutput, "cannot read \(path) (\(error))")
        }
        let rights = owner.map {
            " (with the rights of \(FileStatus.name(ofUser: $0.user)), who can change where it leads)"
        }
        do throws(SpoolError) {
            func open() throws(SpoolError) -> BackfillFile { try BackfillFile(path: path, maxEventSize: maxEventSize) }
            if owner != nil, let file = PathOwner.itself(path) {
                return try BackfillFile(path: path, by: "/proc/self/fd/\(file.raw)", maxEventSize: maxEventSize)
            }
            if let file = if let owner { try owner.perform(open) } else { try open() } { return file }
        } catch {
            let isForbidden = error.cause?.number == EACCES || error.cause?.number == EPERM
            throw CommandFailure(
                isForbidden ? .noPermission : .inputOutput, error.description + (isForbidden ? rights ?? "" : ""))
        }
        throw CommandFailure(.noPermission, "\(path) cannot be opened\(rights ?? ""): this process may not take them")
    }

    /// Takes a file from where it was taken to; gives the agent's words where somebody else has taken a piece meanwhile.
    private func take(_ file: BackfillFile, _ course: inout Course) throws(CommandFailure) -> String? {
        guard case .taken(let state) = try ask("GET", file, nil, from: nil) else {
            throw CommandFailure(.software, "the agent does not report how far \(file.path) was read")
        }
        var place = state["place"]?.string
        let pieceBytes = state["piece_bytes"]?.integer ?? 65_536
        file.format = state["format"]?.string.flatMap(LineFormat.init)
        let isSame = try orFail(.inputOutput, try file.begin(at: place))
        let isKnown = isSame && place != nil
        course.progress.skip(file.position)
        let (events, bad) = (course.read, course.bad)
        while let piece = try orFail(.inputOutput, try file.next(atMost: pieceBytes)) {
            let result: JSONValue
            switch try offer(piece, of: file, from: place, &course) {
            case .taken(let taken): result = taken
            case .elsewhere(let words), .later(let words): return words
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
        course.progress.reached((course.before + ByteCount(file.size)).value, events: 0, at: time.bootTime)
        let taken = course.read - events
        let good = taken - (course.bad - bad)
        let anew = isSame ? "taken" : "was rewritten since it was read, taken anew"
        let word = isKnown ? taken == 0 ? "was read before, nothing to do" : "resumed" : anew
        try course.line.end(with: "\(file.path): \(word)\(taken == 0 ? "" : ", \(HumanText.plural(good, "event"))")")
        return nil
    }

    /// Offers a piece until it is taken, or found to have been taken elsewhere.
    private func offer(
        _ piece: FilePiece, of file: BackfillFile, from place: String?, _ course: inout Course
    ) throws(CommandFailure) -> Answer {
        while true {
            let answer = try ask("POST", file, piece, from: place)
            if case .elsewhere = answer { return answer }
            // Nobody else tells an agent of ours to send, where the interval is long or off.
            if isOwnAgent { _ = try request("POST", "/v1/dispatch", [], nil) }
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
            usleep(50_000)
        }
    }

    private func ask(
        _ method: String, _ file: BackfillFile, _ piece: FilePiece?, from place: String?
    ) throws(CommandFailure) -> Answer {
        var query = [("key", file.key), ("app", app)]
        if let piece {
            query.append(("file", String(decoding: file.path.utf8.suffix(1024), as: UTF8.self)))
            query += [("offset", "\(piece.offset)"), ("end", piece.end)]
            if let place { query.append(("from", place)) }
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
        case "not_found": throw CommandFailure(.unreachable, "the running agent is too old for this; restart it")
        default: throw CommandFailure(status == 400 || status == 413 ? .badData : .temporaryFailure, message)
        }
    }

    private func request(
        _ method: String, _ path: String, _ query: [(String, String)], _ content: [UInt8]?
    ) throws(CommandFailure) -> (status: Int, json: JSONValue) {
        do throws(ControlError) {
            var patient = client
            // Events of a piece may wait for functions of containers, one after the other.
            if content != nil { patient.timeout = .seconds(600) }
            let answer = try patient.request(method, path, query: query, content: content)
            return (answer.status, try answer.json())
        } catch {
            throw CommandFailure(
                .temporaryFailure,
                "the agent has ended (\(error.message)); the same command resumes where this one ended")
        }
    }

    /// Has an agent of ours send what is left.
    private func drain() throws(CommandFailure) -> ExitCode {
        let left = deadline.map { max(.zero, $0 - time.bootTime) } ?? .seconds(86_400)
        var patient = client
        patient.timeout = left + .seconds(10)
        let answer = try relaying(
            try patient.request("POST", "/v1/drain", body: ["timeout_ms": .integer(left.wholeMilliseconds)])
        ) { (_: ControlError) in
            CommandFailure(.temporaryFailure, "the agent has ended; the next one sends the queued events")
        }
        let last = answer.body.split(separator: UInt8(ascii: "\n")).last.map { Array($0) } ?? []
        guard let result = try? JSONValue(parsing: last), let number = result["exit_code"]?.integer else {
            throw CommandFailure(.software, "the agent does not report whether everything was sent")
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

    /// How many events wait, by destination.
    private func waiting() throws(CommandFailure) -> [String: Int] {
        let destinations = try request("GET", "/v1/status", [], nil).json["destinations"]?.array ?? []
        return Dictionary(destinations.map { ($0["name"]?.string ?? "", $0.sum("queued")) }) { $1 }
    }
}
