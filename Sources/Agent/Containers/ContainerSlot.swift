internal import Configuration
internal import Containers
internal import EventLoops
internal import Model
internal import Outputs

/// One container: its machine, its fetcher, its documents made ready. Unchecked: used on the keeper's loop only.
final class ContainerSlot: @unchecked Sendable {
    var state: ContainerState
    let fetcher: DocumentFetcher?
    let keys: [PublicKey]
    /// What its documents were made into; those that are in no use any more go.
    private var compiled: [(copy: ContainerCopy, container: CompiledContainer)] = []
    /// The file of the last fetch, as it was served, until the machine has judged it.
    var fetched: (copy: ContainerCopy, file: [UInt8])?
    /// The file that is to be saved, until it is.
    var unsaved: (copy: ContainerCopy, file: [UInt8])?
    var isSaving = false
    /// Ends of refreshes that are told once it is.
    var heldEnds: [ContainerNote] = []
    /// What functions answered for the values of the document in force.
    private var answers: [FunctionCall: JSONValue] = [:]
    /// Functions whose answers the values wait for.
    private(set) var needed: [FunctionCall] = []
    let facts: AgentFacts
    var timer: (id: EventLoop.TimerID, at: BootInstant)?
    var openers: [CheckedContinuation<Void, Never>] = []
    /// Told when the fetch under way has ended.
    var waiters: [CheckedContinuation<RefreshEnd, Never>] = []
    /// The default file as it was read last.
    var standard: ContainerCopy?
    /// It was replaced, or is in the configuration no more: what comes in is for nobody.
    var isClosed = false
    /// Whether it was said that events wait for it.
    var isHolding = false

    var settings: ContainerSettings { state.settings }
    var current: CompiledContainer? { state.current }

    init(_ settings: ContainerSettings, fetcher: DocumentFetcher?, facts: AgentFacts) {
        state = ContainerState(settings, facts)
        self.facts = facts
        self.fetcher = fetcher
        keys = settings.publicKeys.compactMap { PublicKey($0) }
    }

    /// Makes a document ready, and remembers what it was made into; throws where it is not one of this container.
    func take(_ content: [UInt8]) throws(ContainerError) -> ContainerCopy {
        try remember(try ContainerDocument(reading: content), content)
    }

    func remember(_ document: ContainerDocument, _ content: [UInt8]) throws(ContainerError) -> ContainerCopy {
        guard document.id == settings.id else {
            throw ContainerError(.id, "it is the container \(document.id), not \(settings.id)")
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

    func answer(_ end: RefreshEnd) {
        let told = waiters
        waiters = []
        for waiter in told { waiter.resume(returning: end) }
    }

    /// Puts a document in force, or none.
    func rule(by container: CompiledContainer?) {
        guard current !== container else { return }
        state.current = container
        answers = [:]
        evaluate()
    }

    /// Works the values out, without an event, with the answers that are there.
    private func evaluate() {
        state.values = []
        state.needEvent = []
        needed = []
        guard let current else { return }
        for key in current.keys {
            switch current.value(ofKey: key, results: { self.answers[$0] }) {
            case .missing: break
            case .value(let value): state.values.append(.init(key, value))
            case .needsEvent: state.needEvent.append(key)
            case .needs(let calls): needed += calls.filter { !needed.contains($0) }
            }
        }
    }

    /// Takes a function's answer; gives whether the values are as complete as they get, or must be asked for more.
    func take(_ answer: JSONValue, of call: FunctionCall, for container: CompiledContainer) -> Bool {
        guard current === container else { return false }
        answers[call] = answer
        guard needed.allSatisfy({ answers[$0] != nil }) else { return false }
        evaluate()
        return true
    }

    func container(of copy: ContainerCopy) -> CompiledContainer? { compiled.first { $0.copy == copy }?.container }

    /// Forgets what no source holds any more.
    func forgetUnused() {
        let known = state.machine.known
        compiled.removeAll { !known.contains($0.copy) }
    }

    /// Whether other settings mean the same sources: then only the machine's options change.
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

/// How a refresh ended, for whoever waited for it.
typealias RefreshEnd = (result: RefreshResult, message: String)

extension ContainerSettings {
    func machineOptions(on facts: AgentFacts) -> ContainerMachine.Options {
        var options = ContainerMachine.Options()
        options.opening = open
        options.timeout = timeout
        options.freshFor = freshFor
        options.refreshInterval = refreshInterval
        options.hasAddress = url != nil
        options.share = facts.share(of: id)
        return options
    }
}
