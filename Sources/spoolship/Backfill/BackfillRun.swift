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

    init(
        console: Console, files: [String], app: String, client: ControlClient, deadline: BootInstant?,
        isOwnAgent: Bool, maxEventSize: Int
    ) {
        self.console = console
        self.files = files
        self.app = app
        self.client = client
        self.deadline = deadline
        self.isOwnAgent = isOwnAgent
        self.maxEventSize = maxEventSize
    }

    /// What was read.
    private struct Tally {
        var read = 0
        var refused = 0
        var quarantined = 0
    }

    /// How asking went on.
    private enum Answer {
        case taken(JSONValue)
        case later(String)
        /// The file has been taken to another place than the one that was known.
        case elsewhere(String)
    }

    /// Takes all files, one after the other.
    ///
    /// - Returns: 0 when all is well; 65 when some lines are no events or were refused; 75 when something cannot be sent.
    func run() throws(CommandFailure) -> ExitCode {
        var opened: [BackfillFile] = []
        // Looked at before the first is taken: a name with a mistake is found at once.
        for file in files { opened.append(try open(file)) }
        var progress = BackfillProgress(
            total: opened.reduce(ByteCount(0)) { $0 + ByteCount($1.size) }.value, at: time.bootTime)
        var line = ProgressLine(console)
        var tally = Tally()
        var before: ByteCount = 0
        opened = []
        for file in files {
            let file = try open(file)
            do throws(CommandFailure) {
                // The last piece of a command that was killed may be taken only now: then it goes on behind that. Once,
                // because two that read the same file would go on like that.
                if let moved = try take(file, before, &progress, &line, &tally),
                    try take(try open(file.path), before, &progress, &line, &tally) != nil
                {
                    throw CommandFailure(.temporaryFailure, moved)
                }
            } catch {
                try line.clear()
                throw error
            }
            before += ByteCount(file.size)
        }
        try line.clear()
        let sent = isOwnAgent ? try drain() : .success
        try report(tally, sent)
        if sent != .success { return sent }
        return tally.refused + tally.quarantined > 0 ? .badData : .success
    }

    private func report(_ tally: Tally, _ sent: ExitCode) throws(CommandFailure) {
        let accepted = tally.read - tally.refused - tally.quarantined
        let fate = !isOwnAgent ? "queued; the agent sends them" : sent == .success ? "delivered" : "queued"
        try console.print("\(HumanText.plural(accepted, "event")) \(fate)")
        if tally.refused + tally.quarantined > 0 {
            console.printError(
                "\(HumanText.plural(tally.quarantined, "line")) put into quarantine, \(HumanText.count(tally.refused)) refused:"
                    + " `spoolship quarantine list` says why")
        }
    }

    private func open(_ path: String) throws(CommandFailure) -> BackfillFile {
        do throws(SpoolError) {
            return try BackfillFile(path: path, maxEventSize: maxEventSize)
        } catch {
            let isForbidden = error.cause?.number == EACCES || error.cause?.number == EPERM
            throw CommandFailure(isForbidden ? .noPermission : .inputOutput, error.description)
        }
    }

    // MARK: One file

    /// Takes a file from where it was taken to.
    ///
    /// - Returns: nil when it was taken to its end; else the agent's words: somebody else has taken a piece meanwhile.
    private func take(
        _ file: BackfillFile, _ before: ByteCount, _ progress: inout BackfillProgress, _ line: inout ProgressLine,
        _ tally: inout Tally
    ) throws(CommandFailure) -> String? {
        guard case .taken(let state) = try ask("GET", file, nil, from: nil) else {
            throw CommandFailure(.software, "the agent does not say how far \(file.path) was taken")
        }
        var place = state["place"]?.string
        let pieceBytes = state["piece_bytes"]?.integer ?? 65_536
        let goesOn = try read { () throws(SpoolError) in try file.begin(at: place) }
        let isKnown = place != nil && goesOn
        progress.skip(file.position)
        let (events, bad) = (tally.read, tally.refused + tally.quarantined)
        while let piece = try read({ () throws(SpoolError) in try file.next(atMost: pieceBytes) }) {
            let result: JSONValue
            switch try offer(piece, of: file, from: place, &progress, &line) {
            case .success(let taken): result = taken
            case .failure(let moved): return moved.words
            }
            place = piece.end
            let count = result["read"]?.integer ?? 0
            tally.read += count
            tally.refused += result["refused"]?.integer ?? 0
            tally.quarantined += result["quarantined"]?.integer ?? 0
            let position = before + ByteCount(min(file.position, file.size))
            progress.reached(position.value, events: count, at: time.bootTime)
            try line.show(progress.text(at: time.bootTime), at: time.bootTime)
        }
        progress.reached((before + ByteCount(file.size)).value, events: 0, at: time.bootTime)
        let taken = tally.read - events
        let good = taken - (tally.refused + tally.quarantined - bad)
        let word = isKnown ? taken == 0 ? "was taken before, nothing to do" : "gone on with" : "taken"
        try line.end(with: "\(file.path): \(word)\(taken == 0 ? "" : ", \(HumanText.plural(good, "event"))")")
        return nil
    }

    private func read<Value>(_ body: () throws(SpoolError) -> Value) throws(CommandFailure) -> Value {
        return try relaying(try body()) { (error: SpoolError) in CommandFailure(.inputOutput, error.description) }
    }

    /// A piece was not taken, because its file has been taken to another place.
    private struct Moved: Error {
        let words: String
    }

    /// Offers a piece until it is taken.
    private func offer(
        _ piece: BackfillFile.Piece, of file: BackfillFile, from place: String?, _ progress: inout BackfillProgress,
        _ line: inout ProgressLine
    ) throws(CommandFailure) -> Result<JSONValue, Moved> {
        while true {
            switch try ask("POST", file, piece, from: place) {
            case .taken(let result):
                progress.obstacle = nil
                // Nobody else tells an agent of ours to send, where the interval is long or off.
                if isOwnAgent { _ = try request("POST", "/v1/dispatch", [], nil) }
                return .success(result)
            case .elsewhere(let words):
                return .failure(Moved(words: words))
            case .later(let reason):
                progress.obstacle = reason
                try line.show(progress.text(at: time.bootTime), at: time.bootTime)
                if let deadline, time.bootTime >= deadline {
                    throw CommandFailure(
                        .deadline, "time ran out, \(reason); the same command goes on where this one ended")
                }
                if isOwnAgent { _ = try request("POST", "/v1/dispatch", [], nil) }
                usleep(50_000)
            }
        }
    }

    // MARK: Asking

    private func ask(
        _ method: String, _ file: BackfillFile, _ piece: BackfillFile.Piece?, from place: String?
    ) throws(CommandFailure) -> Answer {
        var query = [("key", file.key)]
        if let piece {
            query += [("file", String(decoding: file.path.utf8.suffix(1024), as: UTF8.self)), ("app", app)]
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
                "the agent has ended (\(error.message)); the same command goes on where this one ended")
        }
    }

    /// Has an agent of ours send what is left.
    private func drain() throws(CommandFailure) -> ExitCode {
        let left = deadline.map { max(.zero, $0 - time.bootTime) } ?? .seconds(86_400)
        var patient = client
        patient.timeout = nil
        let answer: ControlClient.Answer
        do throws(ControlError) {
            answer = try patient.request("POST", "/v1/drain", body: ["timeout_ms": .integer(left.wholeMilliseconds)])
        } catch {
            throw CommandFailure(.temporaryFailure, "the agent has ended; what is queued is sent by the next one")
        }
        let last = answer.body.split(separator: UInt8(ascii: "\n")).last.map { Array($0) } ?? []
        guard let result = try? JSONValue(parsing: last), let number = result["exit_code"]?.integer else {
            throw CommandFailure(.software, "the agent does not say whether all was sent")
        }
        let code = ExitCode(rawValue: Int32(clamping: number)) ?? .temporaryFailure
        guard code != .success else { return .success }
        let waiting = try waiting()
        for obstacle in result["obstacles"]?.members ?? [] {
            let count = waiting[obstacle.key].map { ", \(HumanText.count($0)) waiting" } ?? ""
            console.printError("\(obstacle.key): \(obstacle.value.string ?? "cannot go")\(count)")
        }
        console.printError("what waits still, the next agent sends")
        return code
    }

    /// How many events wait, by destination.
    private func waiting() throws(CommandFailure) -> [String: Int] {
        let destinations = try request("GET", "/v1/status", [], nil).json["destinations"]?.array ?? []
        return Dictionary(destinations.map { ($0["name"]?.string ?? "", $0.sum("queued")) }) { $1 }
    }
}
