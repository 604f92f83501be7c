internal import Configuration
internal import Containers
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Synchronization

/// Opens the containers and keeps them fresh: the shell around `ContainerMachine`.
///
/// It lives on the main loop. What is in force it publishes to the intake, which looks between two events, and tells the
/// agent, which lets values set settings. What went wrong with a document changes nothing but the status.
actor ContainerKeeper: LoopActor {
    nonisolated let loop: EventLoop
    let time: any TimeSource
    let log: Log
    let store: QueueStore
    let inForce: ContainersInForce
    let userAgent: String
    private var facts: AgentFacts
    let ask: @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    let clock: ClockTrust
    var random = KernelRandom()
    private(set) var slots: [ContainerSlot] = []
    private(set) var holdsReading = false
    var offline: Set<String> = []
    let isNetworkOn: @Sendable () -> Bool
    let published: @Sendable () -> Void
    let changed: @Sendable () -> Void
    private nonisolated let publishedStates = Mutex<[ContainerState]>([])
    nonisolated let watchers = ContainerWatch()

    /// - Parameters:
    ///   - inForce: where the intake looks.
    ///   - facts: what macros know of the agent.
    ///   - clock: whether the time of day can be trusted: nothing expires while it cannot.
    ///   - published: told, on the main loop, when something was put in force: whoever reads events may go on.
    ///   - changed: told, on the main loop, when what is in force, or one of its values, has changed.
    ///   - ask: asks a function for a value, from any thread; answers on any.
    init(
        store: QueueStore, inForce: ContainersInForce, userAgent: String, facts: AgentFacts, on loop: EventLoop,
        time: any TimeSource, clock: sending ClockTrust = ClockTrust(), log: Log,
        isNetworkOn: @escaping @Sendable () -> Bool = { true },
        published: @escaping @Sendable () -> Void = {}, changed: @escaping @Sendable () -> Void = {},
        ask: @escaping @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    ) {
        (self.clock, self.facts, self.ask, self.isNetworkOn) = (clock, facts, ask, isNetworkOn)
        (self.published, self.changed, self.store, self.inForce) = (published, changed, store, inForce)
        (self.userAgent, self.loop, self.time, self.log) = (userAgent, loop, time, log)
    }

    /// The state of all containers, in configuration order. From any thread.
    nonisolated var states: [ContainerState] { publishedStates.withLock { $0 } }

    /// How those of other settings stand that are known already, with what these let them set. From any thread.
    nonisolated func states(for settings: [ContainerSettings]) -> [ContainerState] {
        let states = states
        return settings.compactMap { settings in
            guard var state = states.first(where: { $0.id == settings.id }) else { return nil }
            state.settings.maySet = settings.maySet
            return state
        }
    }

    // MARK: Settings

    /// Takes the containers of a configuration: new ones are opened, those that are gone rule no longer. One whose sources
    /// have changed (address, keys, file) is opened again; what it held stays in force until then.
    ///
    /// - Returns: what changes beside the settings' own values, a line each: the order, what files hold.
    @discardableResult
    func configure(
        _ settings: [ContainerSettings], keyLengths: Set<Int> = [], hashKeys: [String: HashKey] = [:]
    ) -> [String] {
        var changes: [String] = []
        facts.keyLengths = keyLengths
        let old = slots
        let (before, now) = (old.map(\.settings.id), settings.map(\.id))
        if before != now, Set(before) == Set(now) {
            changes.append("order of [[container]] \(before.joined(separator: ", ")) -> \(now.joined(separator: ", "))")
        }
        var isReread: [ContainerSlot] = []
        slots = settings.map { settings in
            var facts = facts
            facts.hashKey = hashKeys[settings.id]
            let known = old.first { $0.settings.id == settings.id }
            if let known, known.facts.hashKey != facts.hashKey,
                known.settings.hashKeyPath(credentials: nil) == settings.hashKeyPath(credentials: nil)
            {
                changes.append("hash key of \(settings.id): its content, so that digests change")
            }
            if let known, known.facts == facts, known.settings == settings || known.serves(settings) {
                if known.settings != settings {
                    known.state.settings = settings
                    known.state.machine.configure(settings.machineOptions(on: facts), at: moment, using: &random)
                    arm(known)
                }
                isReread.append(known)
                return known
            }
            let slot = ContainerSlot(settings, fetcher: fetcher(of: settings), facts: facts)
            slot.rule(by: known?.current)
            return slot
        }
        for slot in old where !slots.contains(where: { $0 === slot }) { close(slot) }
        for slot in slots where !old.contains(where: { $0 === slot }) {
            feed(slot, .start(standard: readDefault(slot)))
        }
        for slot in isReread where slot.settings.defaultFile != nil {
            // One that cannot be used now leaves the last good one in its place.
            let before = slot.standard
            guard let standard = readDefault(slot) else { continue }
            if standard != before { changes.append("default_file of \(slot.settings.id): its content") }
            feed(slot, .standard(standard))
        }
        inForceChanged()
        return changes
    }

    private func close(_ slot: ContainerSlot) {
        slot.isClosed = true
        if let timer = slot.timer { loop.cancel(timer.id) }
        slot.timer = nil
        slot.heldEnds = []
        release(slot)
    }

    /// Reads a container's default file; nil where it has none, or none that can be used: the log and `status` say why.
    private func readDefault(_ slot: ContainerSlot) -> ContainerCopy? {
        guard let path = slot.settings.defaultFile else { return nil }
        let id = slot.settings.id
        do throws(ContainerError) {
            let file = try DefaultFile(path: path, id: id)
            for name in file.overshadowed {
                log.warning("default file not used", ["container": id, "file": name, "used": file.path])
            }
            let copy = try slot.remember(file.document, file.bytes)
            slot.standard = copy
            slot.state.defaultProblem = file.signatureProblem(slot.keys)
            if let problem = slot.state.defaultProblem {
                log.warning(
                    "default file with a bad signature, in force nevertheless", ["container": id, "hint": problem])
            }
            if let expires = copy.expires, clock.isTrusted(at: time), expires <= time.wallTime {
                slot.state.defaultProblem = "the default file's document has expired; it stays in force"
                log.warning(
                    "default file has expired, it stays in force",
                    ["container": id, "file": file.path, "hint": "put a newer document there, and reload"])
            }
            return copy
        } catch {
            log.error(
                slot.state.machine.hasStandard
                    ? "default file not reread, the last good one stays in force" : "container without a default",
                ["container": id, "hint": error.description])
            let stays = slot.state.machine.hasStandard ? "; the last good one stays in force" : ""
            slot.state.defaultProblem = error.description + stays
            return nil
        }
    }

    // MARK: Opening and stopping

    /// Returns when all containers are open: after the longest of their timeouts at the latest (tm05).
    func waitUntilOpen() async {
        for slot in slots where !slot.state.machine.isOpen {
            await withCheckedContinuation { continuation in
                if slot.state.machine.isOpen || slot.isClosed { return continuation.resume() }
                slot.openers.append(continuation)
            }
        }
    }

    /// No line is read until `resumeReading`: a reload changes rules and destinations together.
    func holdReading() {
        holdsReading = true
        showReader()
    }

    func resumeReading() {
        holdsReading = false
        showReader()
    }

    /// Ends opening with what there is, and all timers: the agent stops.
    func stop() {
        for slot in slots {
            feed(slot, .stopOpening)
            close(slot)
        }
    }

    func release(_ slot: ContainerSlot) {
        let openers = slot.openers
        slot.openers = []
        for opener in openers { opener.resume() }
        if slot.isClosed { slot.answer((.unknownError, "the container was closed")) }
    }

    // MARK: Their state

    /// Why events are not read, for `ready`. From any thread.
    nonisolated var obstacles: [String] {
        states.filter(\.isHolding).map { state in
            let apps = state.settings.apps.isEmpty ? "" : " of \(state.settings.apps.joined(separator: ", "))"
            return "events\(apps) are not read: the container \(state.id) is required and \(state.lack ?? "")"
                + (state.problem.map { " (\($0))" } ?? "")
        }
    }

    func publish() {
        let states = slots.map(\.state)
        publishedStates.withLock { $0 = states }
    }

    func setRefused(_ refused: [String: [String: String]]) {
        for slot in slots { slot.state.refused = refused[slot.settings.id] ?? [:] }
        publish()
    }

    /// Tells what happens: log, counters, watchers.
    func tell(_ slot: ContainerSlot, _ note: ContainerNote) {
        let id = slot.settings.id
        note.write(to: log, container: id)
        switch note {
        case .succeeded(let type, _, _): end(slot, type, .success, "")
        case .failed(let type, let result, let message): end(slot, type, result, message)
        default: break
        }
        watchers.offer(note.json(container: id, at: time.wallTime))
    }

    private func end(_ slot: ContainerSlot, _ type: RefreshType, _ result: RefreshResult, _ message: String) {
        slot.state.results[type, default: [:]][result, default: 0] += 1
        guard type == .network else { return }
        slot.state.lastFetch = result
        slot.answer((result, message))
    }
}
