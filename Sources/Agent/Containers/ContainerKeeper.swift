internal import Configuration
internal import Containers
internal import EventLoops
internal import Logs
internal import Model
internal import Outputs
internal import Queue
internal import Synchronization

/// Opens the containers and keeps them fresh: the shell around `ContainerMachine`.
///
/// It lives on the main loop. What is in force it publishes to the intake, which looks between two events, and tells the
/// agent, which lets values set settings. What went wrong with a document changes nothing but the status.
actor ContainerKeeper {
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let loop: EventLoop
    let time: any TimeSource
    let log: Log
    private let store: QueueStore
    private let inForce: ContainersInForce
    private let userAgent: String
    private let facts: AgentFacts
    private let ask: @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    private let clock = ClockTrust()
    private var random = KernelRandom()
    private(set) var slots: [ContainerSlot] = []
    private var offline: Set<String> = []
    private var isNetworkOn: @Sendable () -> Bool = { true }
    /// Told, on the main loop, when what is in force has changed.
    private var changed: @Sendable () -> Void = {}
    private nonisolated let published = Mutex<[ContainerState]>([])
    nonisolated let watch = ContainerWatch()

    /// - Parameters:
    ///   - inForce: where the intake looks.
    ///   - facts: what macros know of the agent.
    ///   - ask: asks a function for a value, from any thread; answers on any.
    init(
        store: QueueStore, inForce: ContainersInForce, userAgent: String, facts: AgentFacts, on loop: EventLoop,
        time: any TimeSource, log: Log,
        ask: @escaping @Sendable (FunctionCall, @escaping @Sendable (JSONValue) -> Void) -> Void
    ) {
        self.facts = facts
        self.ask = ask
        self.store = store
        self.inForce = inForce
        self.userAgent = userAgent
        self.loop = loop
        self.time = time
        self.log = log
    }

    /// How all containers stand, in configuration order. From any thread.
    nonisolated var states: [ContainerState] { published.withLock { $0 } }

    /// How those of other settings stand that are known already, with what these let them set. From any thread.
    nonisolated func states(for settings: [ContainerSettings]) -> [ContainerState] {
        let states = states
        return settings.compactMap { settings in
            guard var state = states.first(where: { $0.id == settings.id }) else { return nil }
            state.maySet = settings.maySet
            return state
        }
    }

    /// Says whom to tell and whom to ask.
    func connect(isNetworkOn: @escaping @Sendable () -> Bool, changed: @escaping @Sendable () -> Void) {
        self.isNetworkOn = isNetworkOn
        self.changed = changed
    }

    // MARK: Settings

    /// Takes the containers of a configuration: new ones are opened, those that are gone rule no longer. One whose sources
    /// have changed (address, keys, file) is opened anew; what it held stays in force until then.
    func configure(_ settings: [ContainerSettings]) {
        let old = slots
        slots = settings.map { settings in
            if let known = old.first(where: { $0.settings.id == settings.id }) {
                if known.settings == settings { return known }
                if known.serves(settings) {
                    known.settings = settings
                    known.machine.configure(settings.machineOptions, at: moment, using: &random)
                    arm(known)
                    return known
                }
            }
            let slot = ContainerSlot(settings, fetcher: fetcher(of: settings), facts: facts)
            slot.current = old.first { $0.settings.id == settings.id }?.current
            return slot
        }
        for slot in old where !slots.contains(where: { $0 === slot }) { close(slot) }
        for slot in slots where !slot.hasStarted { start(slot) }
        inForceChanged()
    }

    private func close(_ slot: ContainerSlot) {
        slot.isClosed = true
        if let timer = slot.timer { loop.cancel(timer.id) }
        slot.timer = nil
        release(slot)
    }

    private func fetcher(of settings: ContainerSettings) -> DocumentFetcher? {
        guard let url = settings.url else { return nil }
        do throws(OutputError) {
            return try DocumentFetcher(fetchOptions(url.text, settings), on: loop)
        } catch {
            log.error("container cannot be fetched", ["container": settings.id, "hint": error.message])
            return nil
        }
    }

    private func start(_ slot: ContainerSlot) {
        slot.hasStarted = true
        var standard: ContainerCopy?
        if let path = slot.settings.defaultFile {
            do throws(ContainerError) {
                let file = try DefaultFile(path: path, id: slot.settings.id)
                for name in file.overshadowed {
                    log.warning(
                        "default file not used", ["container": slot.settings.id, "file": name, "used": file.path])
                }
                standard = try slot.remember(file.document, file.bytes)
            } catch {
                log.error("container without a default", ["container": slot.settings.id, "hint": error.description])
                slot.defaultProblem = error.description
            }
        }
        feed(slot, .start(standard: standard))
    }

    // MARK: Opening and stopping

    /// Returns when all containers are open: after the longest of their timeouts at the latest (tm05).
    func waitUntilOpen() async {
        for slot in slots where !slot.machine.isOpen {
            await withCheckedContinuation { continuation in
                if slot.machine.isOpen || slot.isClosed { return continuation.resume() }
                slot.openers.append(continuation)
            }
        }
    }

    /// Ends opening with what there is, and all timers: the agent stops.
    func stop() {
        for slot in slots {
            feed(slot, .stopOpening)
            close(slot)
        }
    }

    private func release(_ slot: ContainerSlot) {
        let openers = slot.openers
        slot.openers = []
        for opener in openers { opener.resume() }
        guard slot.isClosed else { return }
        let waiters = slot.waiters
        slot.waiters = []
        for waiter in waiters {
            waiter.resume(returning: RefreshEnd(result: .unknownError, message: "the container was closed"))
        }
    }

    // MARK: The machine

    private var moment: ContainerMoment {
        ContainerMoment(boot: time.bootTime, wall: time.wallTime, isTrusted: clock.isTrusted(at: time))
    }

    /// Gives the machine an input and does what it says.
    func feed(_ slot: ContainerSlot, _ input: ContainerMachine.Input) {
        guard !slot.isClosed else { return }
        let effects = slot.machine.handle(input, at: moment, using: &random)
        var isChanged = false
        for effect in effects {
            switch effect {
            case .loadSaved: loadSaved(slot)
            case .fetch(let etag): fetch(slot, etag)
            case .keep(let copy, let etag, let confirmed): keep(slot, copy, etag, confirmed)
            case .confirm(let confirmed): confirm(slot, confirmed)
            case .open: release(slot)
            case .apply(let held):
                slot.current = held.flatMap { slot.container(of: $0.copy) }
                isChanged = true
            case .tell(let note): tell(slot, note)
            }
        }
        slot.forgetUnused()
        arm(slot)
        if isChanged { inForceChanged() } else { publish() }
    }

    private func arm(_ slot: ContainerSlot) {
        let wanted = slot.machine.wake(at: moment)
        guard slot.timer?.at != wanted else { return }
        if let timer = slot.timer { loop.cancel(timer.id) }
        slot.timer = wanted.map { at in
            let id = loop.at(at) { [weak self] in
                self?.assumeIsolated { keeper in
                    slot.timer = nil
                    keeper.feed(slot, .timer)
                }
            }
            return (id, at)
        }
    }

    private func inForceChanged() {
        inForce.publish(slots.compactMap(\.current))
        publish()
        changed()
        for slot in slots { askFunctions(slot, round: 1) }
    }

    /// Asks for what the values of a container wait for; each answer may lead to another question, to a bound.
    private func askFunctions(_ slot: ContainerSlot, round: Int) {
        guard let container = slot.current, round <= DocumentLimits.macroChain else { return }
        for call in slot.needed {
            ask(call) { answer in
                self.loop.post {
                    self.assumeIsolated { keeper in
                        guard !slot.isClosed, slot.take(answer, of: call, for: container) else { return }
                        keeper.publish()
                        keeper.changed()
                        keeper.askFunctions(slot, round: round + 1)
                    }
                }
            }
        }
    }

    /// Publishes how all stand.
    private func publish() {
        let boot = time.bootTime
        let wall = time.wallTime
        let states = slots.map { $0.state(boot: boot, wall: wall) }
        published.withLock { $0 = states }
    }

    /// Notes which values of `may_set` were refused.
    func setRefused(_ refused: [String: [String: String]]) {
        for slot in slots { slot.refused = refused[slot.settings.id] ?? [:] }
        publish()
    }

    // MARK: Saved

    private func loadSaved(_ slot: ContainerSlot) {
        Task(executorPreference: loop) {
            let saved = await self.readSaved(slot)
            await self.feed(slot, .saved(saved))
        }
    }

    private func readSaved(_ slot: ContainerSlot) async -> ContainerMachine.Saved {
        let kept: SavedContainer?
        do throws(QueueError) {
            kept = try await store.savedContainer(slot.settings.id)
        } catch {
            return .failed(error.message)
        }
        guard let kept else { return .missing }
        do throws(ContainerError) {
            let file = try SignedDocument(kept.file)
            try file.verify(by: slot.keys)
            return .copy(try slot.take(file.document), etag: kept.etag, confirmed: kept.confirmed)
        } catch {
            return .refused(ContainerError(error.code, "the saved copy: \(error.description)"), version: kept.version)
        }
    }

    private func keep(_ slot: ContainerSlot, _ copy: ContainerCopy, _ etag: String?, _ confirmed: Timestamp) {
        guard let fetched = slot.fetched, fetched.copy == copy else { return }
        slot.fetched = nil
        let saved = SavedContainer(version: copy.version, etag: etag, confirmed: confirmed, file: fetched.file)
        let id = slot.settings.id
        write(slot) { [store] () async throws(QueueError) in try await store.saveContainer(id, saved) }
    }

    private func confirm(_ slot: ContainerSlot, _ confirmed: Timestamp) {
        let id = slot.settings.id
        write(slot) { [store] () async throws(QueueError) in try await store.confirmContainer(id, at: confirmed) }
    }

    /// What cannot be saved serves all the same, until a restart.
    private func write(_ slot: ContainerSlot, _ work: @escaping @Sendable () async throws(QueueError) -> Void) {
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await work()
            } catch {
                await self.noteUnsaved(slot, error)
            }
        }
    }

    private func noteUnsaved(_ slot: ContainerSlot, _ error: QueueError) {
        tell(slot, .failed(.saved, .ioError, message: "cannot save the document: \(error.message)"))
        publish()
    }

    // MARK: Network

    private func fetch(_ slot: ContainerSlot, _ etag: String?) {
        Task(executorPreference: loop) {
            let fetched = await self.fetched(slot, etag)
            await self.feed(slot, .fetched(fetched))
        }
    }

    private func fetched(_ slot: ContainerSlot, _ etag: String?) async -> ContainerMachine.Fetched {
        guard isNetworkOn() else { return .failed(.noNetwork, "the network is switched off (`spoolship network on`)") }
        guard !offline.contains(slot.settings.id) else { return .failed(.noNetwork, "no route leads there") }
        guard let fetcher = slot.fetcher else { return .failed(.unknownError, "its url or ca_file cannot be used") }
        let result = await fetcher.fetch(etag: etag)
        switch result {
        case .notModified: return .notModified
        case .status(let status):
            return .failed(.serverError, "the server answered \(status)\(ContainerKeeper.hint(status))")
        case .tooLarge:
            return .refused(ContainerError(.limit, "it is larger than \(SignedDocument.largest) bytes"))
        case .failed(let failure):
            return .failed(failure.kind == .local ? .unknownError : .networkError, failure.message)
        case .document(let file, let etag):
            do throws(ContainerError) {
                let signed = try SignedDocument(file)
                try signed.verify(by: slot.keys)
                let copy = try slot.take(signed.document)
                slot.fetched = (copy, file)
                return .copy(copy, etag: etag)
            } catch {
                return .refused(ContainerError(error.code, error.description))
            }
        }
    }

    /// Fetches what a person's link leads to, as the container's own documents are fetched, but within a few seconds.
    func fetched(_ link: String, for slot: ContainerSlot) async throws(Mistake) -> [UInt8] {
        guard isNetworkOn() else { throw .link("the network is switched off (`spoolship network on`)") }
        var options = fetchOptions(link, slot.settings)
        options.connectTimeout = .seconds(4)
        options.timeout = .seconds(8)
        let fetcher: DocumentFetcher
        do throws(OutputError) {
            fetcher = try DocumentFetcher(options, on: loop)
        } catch {
            throw .link(error.message)
        }
        switch await fetcher.fetch(etag: nil) {
        case .document(let file, _): return file
        case .notModified: throw .link("the server answered 304")
        case .status(let status): throw .link("the server answered \(status)\(ContainerKeeper.hint(status))")
        case .tooLarge: throw .link("it is larger than \(SignedDocument.largest) bytes")
        case .failed(let failure): throw .link(failure.message)
        }
    }

    private func fetchOptions(_ url: String, _ settings: ContainerSettings) -> FetchOptions {
        var options = FetchOptions(url: url)
        options.caFile = settings.caFile
        options.largest = SignedDocument.largest
        options.userAgent = userAgent
        return options
    }

    private static func hint(_ status: Int) -> String {
        switch status {
        case 300..<400: "; redirects are not followed, so let url lead there directly"
        case 404, 410: "; is it published there?"
        default: ""
        }
    }

    /// Routes were looked at again.
    ///
    /// - Parameters:
    ///   - routes: whether a route leads to a container's address, by its id.
    ///   - hasChanged: whether the default route appeared or changed.
    func networkNews(_ routes: [String: Bool], hasChanged: Bool) {
        let before = offline
        offline = Set(routes.filter { !$0.value }.map(\.key))
        for slot in slots where hasChanged || before.contains(slot.settings.id) && !offline.contains(slot.settings.id) {
            feed(slot, .networkChanged)
        }
    }

    /// Tells what happens: log, counters, watchers.
    private func tell(_ slot: ContainerSlot, _ note: ContainerNote) {
        let id = slot.settings.id
        note.write(to: log, container: id)
        switch note {
        case .succeeded(let type, _, _):
            slot.results[type, default: [:]][.success, default: 0] += 1
            if type == .network { end(slot, .success, "") }
        case .failed(let type, let result, let message):
            slot.results[type, default: [:]][result, default: 0] += 1
            if type == .network { end(slot, result, message) }
        default: break
        }
        watch.offer(note.json(container: id, at: time.wallTime))
    }

    private func end(_ slot: ContainerSlot, _ result: RefreshResult, _ message: String) {
        slot.lastFetch = result
        let waiters = slot.waiters
        slot.waiters = []
        for waiter in waiters { waiter.resume(returning: RefreshEnd(result: result, message: message)) }
    }
}
