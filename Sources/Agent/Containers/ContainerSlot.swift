internal import Configuration
internal import Containers
internal import EventLoops
internal import Model
internal import Outputs

/// One container: its state, its fetcher and its compiled documents. Not checked by the compiler: used on the
/// keeper's loop only.
final class ContainerSlot: @unchecked Sendable {
    /// The state, of which the keeper publishes copies.
    var state: ContainerState
    /// Fetches the published document; nil without a `url`, or if its address or `ca_file` is invalid.
    let fetcher: DocumentFetcher?
    /// The keys that may sign documents of this container.
    let keys: [PublicKey]
    /// The compiled form of each document that a source holds; the same document may come from several
    /// sources.
    private var compiled: [(copy: ContainerCopy, container: CompiledContainer)] = []
    /// The saving of the newest copy.
    var saving = CopySaving()
    /// Functions whose answers the values depend on.
    private(set) var needed: [FunctionCall] = []
    /// What macros and the redaction of this container know: facts about the machine, lengths of keys, the
    /// hash key.
    let facts: AgentFacts
    /// The timer for the machine's next wake, and when it fires.
    var timer: (id: EventLoop.TimerID, at: BootInstant)?
    /// Callers that wait until the container is open.
    var openers: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait for the fetch under way.
    var waiters: [CheckedContinuation<RefreshEnd, Never>] = []
    /// The default file as it was last read; by it a reload sees that the content has changed.
    var standard: ContainerCopy?
    /// True after the slot was replaced, or removed from the configuration. Results of fetches that arrive
    /// later are ignored.
    var isClosed = false
    /// True if the log says that events wait for this container; the message is written once.
    var isHolding = false

    var settings: ContainerSettings { state.settings }
    var current: CompiledContainer? { state.current }

    init(_ settings: ContainerSettings, fetcher: DocumentFetcher?, facts: AgentFacts) {
        state = ContainerState(settings, facts)
        self.facts = facts
        self.fetcher = fetcher
        keys = settings.publicKeys.compactMap { PublicKey($0) }
    }

    /// Parses and compiles a document; throws if it is invalid, or belongs to another container.
    func take(_ content: [UInt8]) throws(ContainerError) -> ContainerCopy {
        try remember(try ContainerDocument(reading: content), content)
    }

    /// Compiles a document, unless the same copy is compiled already, and keeps the result until no source
    /// holds the copy.
    func remember(_ document: ContainerDocument, _ content: [UInt8]) throws(ContainerError) -> ContainerCopy {
        guard document.id == settings.id else {
            throw ContainerError(.id, "the document is for the container \(document.id), not \(settings.id)")
        }
        let copy = ContainerCopy(
            version: document.version, expires: document.expires, rollout: document.rollout, content: content)
        if container(of: copy) == nil {
            let made = try CompiledContainer(
                document, mayCall: Set(settings.mayCall), facts: facts, apps: Set(settings.apps))
            compiled.append((copy, made))
        }
        return copy
    }

    /// Reports the end of a fetch to all callers that wait for it.
    func answer(_ end: RefreshEnd) {
        let told = waiters
        waiters = []
        for waiter in told { waiter.resume(returning: end) }
    }

    /// Makes a document the one in force; nil: none is. What was evaluated by the one before is forgotten.
    func rule(by container: CompiledContainer?) {
        guard current !== container else { return }
        state.current = container
        state.answers = [:]
        evaluate()
    }

    /// Works out the values that depend on no event, with the answers of functions that are known so far.
    private func evaluate() {
        state.values = []
        state.needEvent = []
        needed = []
        guard let current else { return }
        for key in current.keys {
            switch current.value(ofKey: key, results: { self.state.answers[$0] }) {
            case .missing: break
            case .value(let value): state.values.append(.init(key, value))
            case .needsEvent: state.needEvent.append(key)
            case .needs(let calls): needed += calls.filter { !needed.contains($0) }
            }
        }
    }

    /// Takes an answer of a function, and works out the values once all answers are there.
    ///
    /// - Returns: true if the values were worked out; they may need further answers. False while answers are
    ///   missing, or if another document is in force by now.
    func take(_ answer: JSONValue, of call: FunctionCall, for container: CompiledContainer) -> Bool {
        guard current === container else { return false }
        state.answers[call] = answer
        guard needed.allSatisfy({ state.answers[$0] != nil }) else { return false }
        evaluate()
        return true
    }

    /// The compiled form of a copy; nil if it was never compiled, or is forgotten.
    func container(of copy: ContainerCopy) -> CompiledContainer? {
        compiled.first { $0.copy == copy }?.container
    }

    /// Forgets compiled documents that no source holds any more.
    func forgetUnused() {
        let known = state.machine.known
        compiled.removeAll { !known.contains($0.copy) }
    }

    /// True if other settings have the same sources, so that only options of the machine differ: then the
    /// slot stays, and what is in force needs no new fetch.
    func serves(_ other: ContainerSettings) -> Bool {
        var timed = settings
        timed.open = other.open
        timed.timeout = other.timeout
        timed.freshFor = other.freshFor
        timed.refreshInterval = other.refreshInterval
        timed.maySet = other.maySet
        timed.required = other.required
        return timed == other
    }
}

/// How a refresh ended, for the callers that waited for it.
typealias RefreshEnd = (result: RefreshResult, message: String)

extension ContainerSettings {
    /// The options of the machine that decides what is in force.
    func machineOptions(on facts: AgentFacts) -> ContainerMachine.Options {
        var options = ContainerMachine.Options()
        options.opening = open
        options.timeout = timeout
        options.freshFor = freshFor
        options.refreshInterval = refreshInterval
        options.hasAddress = url != nil
        // Which machines a staged rollout reaches first; always the same for this machine and container.
        options.share = facts.share(of: id)
        return options
    }
}
