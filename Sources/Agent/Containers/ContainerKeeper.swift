internal import Configuration
internal import Containers
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Synchronization

/// Opens the containers and keeps them up to date: the shell around `ContainerMachine`, which decides.
///
/// It lives on the main loop. It publishes what is in force to the intake, which reads it between two events,
/// and to the agent, which lets values change settings. A document with a mistake changes nothing except the
/// status.
///
/// Its parts: this file has settings, opening and state; `+Machine` gives the machine its inputs and carries
/// out its effects, `+Commands` answers the control API. `DocumentSources` fetches and loads documents.
actor ContainerKeeper: LoopActor {
    nonisolated let loop: EventLoop
    let time: any TimeSource
    let log: Log
    /// Where documents come from.
    let sources: DocumentSources
    /// The documents in force, for the intake.
    let inForce: ContainersInForce
    /// Facts about the machine for macros; slots add their hash key.
    private var facts: AgentFacts
    /// Calls a function of the configuration.
    let ask: @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    /// Whether the time of day can be trusted; nothing expires while it cannot.
    let clock: ClockTrust
    /// Spreads fetches, so that a fleet does not ask its server at one moment.
    var random = KernelRandom()
    /// The containers, in the order of the configuration.
    private(set) var slots: [ContainerSlot] = []
    /// The rules of the configuration, which act before all containers.
    private(set) var rules = ConfiguredRules()
    /// True while a reload is under way, and no line may be read.
    private(set) var holdsReading = false
    /// Ids of the containers whose server has no route.
    var offline: Set<String> = []
    /// Called after something was put in force, so that readers which wait for a container try again.
    let published: @Sendable () -> Void
    /// Called when what is in force, or one of its values, has changed.
    let changed: @Sendable () -> Void
    /// The copies of the states for other threads.
    private nonisolated let publishedStates = Mutex<[ContainerState]>([])
    /// The clients of `container watch`.
    nonisolated let watchers = ContainerWatch()

    /// - Parameters:
    ///   - inForce: where the intake reads what is in force.
    ///   - facts: what macros know of the agent.
    ///   - clock: whether the time of day can be trusted; nothing expires while it cannot.
    ///   - published: called on the main loop when something was put in force, so that readers may continue.
    ///   - changed: called on the main loop when what is in force, or one of its values, has changed.
    ///   - ask: calls a function, from any thread; the answer comes on any thread.
    init(
        store: QueueStore, inForce: ContainersInForce, userAgent: String, facts: AgentFacts,
        on loop: EventLoop,
        time: any TimeSource, clock: sending ClockTrust = ClockTrust(), log: Log,
        isNetworkOn: @escaping @Sendable () -> Bool = { true },
        published: @escaping @Sendable () -> Void = {}, changed: @escaping @Sendable () -> Void = {},
        ask: @escaping @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    ) {
        self.clock = clock
        self.facts = facts
        self.ask = ask
        self.published = published
        self.changed = changed
        sources = DocumentSources(
            loop: loop, time: time, log: log, store: store, userAgent: userAgent, isNetworkOn: isNetworkOn)
        self.inForce = inForce
        self.loop = loop
        self.time = time
        self.log = log
    }

    /// The states of all containers, in the order of the configuration. From any thread.
    nonisolated var states: [ContainerState] { publishedStates.withLock { $0 } }

    /// The states of the containers of other settings, for containers that are known already, with the
    /// permissions of these settings: a reload checks by them what values may set. From any thread.
    nonisolated func states(for settings: [ContainerSettings]) -> [ContainerState] {
        let states = states
        return settings.compactMap { settings in
            guard var state = states.first(where: { $0.id == settings.id }) else { return nil }
            state.settings.maySet = settings.maySet
            return state
        }
    }

    // MARK: Settings

    /// Takes over the containers of a configuration. New ones are opened, and removed ones are no longer in
    /// force. A container whose sources (address, keys, file) have changed is opened again; what it had stays
    /// in force until then.
    ///
    /// - Returns: a line for each change that a comparison of the settings does not show: the order, the
    ///   content of files.
    @discardableResult
    func configure(
        _ settings: [ContainerSettings], keyLengths: Set<Int> = [], hashKeys: [String: HashKey] = [:],
        rules: ConfiguredRules = ConfiguredRules()
    ) -> [String] {
        var changes: [String] = []
        if let old = self.rules.hashKey, let new = rules.hashKey, old != new {
            changes.append("agent.hash_key: its content, so that digests change")
        }
        self.rules = rules
        facts.keyLengths = keyLengths
        let old = slots
        let before = old.map(\.settings.id)
        let now = settings.map(\.id)
        // The order decides which of two containers acts first, and no setting of its own shows it.
        if before != now, Set(before) == Set(now) {
            changes.append(
                "order of [[container]] \(before.joined(separator: ", ")) -> \(now.joined(separator: ", "))")
        }
        // Known slots; their default files are read again below.
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
                    known.state.machine.configure(
                        settings.machineOptions(on: facts), at: moment, using: &random)
                    arm(known)
                }
                isReread.append(known)
                return known
            }
            let slot = ContainerSlot(settings, fetcher: sources.fetcher(of: settings), facts: facts)
            // The old document stays in force until the new sources have one; without it events would pass
            // unredacted.
            slot.rule(by: known?.current)
            return slot
        }
        for slot in old where !slots.contains(where: { $0 === slot }) { close(slot) }
        for slot in slots where !old.contains(where: { $0 === slot }) {
            feed(slot, .start(standard: readDefault(slot)))
        }
        for slot in isReread where slot.settings.defaultFile != nil {
            // If the file is invalid now, the last good one stays in force.
            let before = slot.standard
            guard let standard = readDefault(slot) else { continue }
            if standard != before {
                changes.append("default_file of \(slot.settings.id): its content")
            }
            feed(slot, .standard(standard))
        }
        inForceChanged()
        return changes
    }

    /// Ends a slot: its timer, and all callers that wait for it.
    private func close(_ slot: ContainerSlot) {
        slot.isClosed = true
        if let timer = slot.timer {
            loop.cancel(timer.id)
        }
        slot.timer = nil
        _ = slot.saving.takeHeldEnds()
        release(slot)
    }

    /// Reads a container's default file. Nil if the container has no file, or an invalid one: the log and
    /// `status` then say why.
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
                    "default file with a bad signature, in force nevertheless",
                    ["container": id, "hint": problem])
            }
            // An expired default file stays in force; a person has to replace it.
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
                    ? "default file not reread, the last good one stays in force"
                    : "container without a default",
                ["container": id, "hint": error.description])
            let stays = slot.state.machine.hasStandard ? "; the last good one stays in force" : ""
            slot.state.defaultProblem = error.description + stays
            return nil
        }
    }

    // MARK: Opening and stopping

    /// Returns when all containers are open, after the longest of their timeouts at the latest. The first
    /// event then meets the rules of its container.
    func waitUntilOpen() async {
        for slot in slots where !slot.state.machine.isOpen {
            await withCheckedContinuation { continuation in
                if slot.state.machine.isOpen || slot.isClosed { return continuation.resume() }
                slot.openers.append(continuation)
            }
        }
    }

    /// Stops reading until `resumeReading`: a reload changes rules and destinations together, and no event
    /// may see only one of the changes.
    func holdReading() {
        holdsReading = true
        showReader()
    }

    /// Lets reading continue after a reload.
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

    /// Resumes the callers that wait until the container is open.
    func release(_ slot: ContainerSlot) {
        let openers = slot.openers
        slot.openers = []
        for opener in openers { opener.resume() }
        if slot.isClosed {
            slot.answer((.unknownError, "the container was closed"))
        }
    }

    // MARK: Their state

    /// Why events are not read, for `/readyz`. From any thread.
    nonisolated var obstacles: [String] {
        states.filter(\.isHolding).map { state in
            let apps = state.settings.apps.isEmpty ? "" : " of \(state.settings.apps.joined(separator: ", "))"
            return "events\(apps) are not read: the container \(state.id) is required and \(state.lack ?? "")"
                + (state.problem.map { " (\($0))" } ?? "")
        }
    }

    /// Publishes copies of the states.
    func publish() {
        let states = slots.map(\.state)
        publishedStates.withLock { $0 = states }
    }

    /// Notes which values of containers the settings have refused, and why.
    func setRefused(_ refused: [String: [String: String]]) {
        for slot in slots { slot.state.refused = refused[slot.settings.id] ?? [:] }
        publish()
    }

    /// Reports what happened to the log, the counters and the watchers.
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

    /// Counts the end of a refresh, and answers the callers that wait for a fetch.
    private func end(_ slot: ContainerSlot, _ type: RefreshType, _ result: RefreshResult, _ message: String) {
        slot.state.results[type, default: [:]][result, default: 0] += 1
        guard type == .network else { return }
        slot.state.lastFetch = result
        slot.answer((result, message))
    }
}
