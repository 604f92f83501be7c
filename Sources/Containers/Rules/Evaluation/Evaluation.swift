internal import Events
internal import Model

/// Works out what is asked for of one container's macros, conditions and rules for an event, each at most once.
///
/// It belongs to one thread. What it gives holds until the next `begin`.
final class Evaluation {
    /// An event, or a push into the data layer.
    struct Subject {
        /// The line: one JSON object that the events' pass has accepted.
        var base: UnsafePointer<UInt8>
        var count: Int
        /// Whether it is a push: its name is its `event`.
        var isPush = false
    }

    let container: CompiledContainer
    /// Calls whose results are missing; what was evaluated meanwhile must not be used while there are any.
    var neededCalls: [FunctionCall] = []
    /// Whether something asked for an event, and there was none.
    var hasMissedEvent = false
    /// Whether something asked for a function that may not be called.
    var hasMissedFunction = false

    private(set) var subject: Subject?
    private(set) var app = ""
    private(set) var layer: DataLayer?
    private(set) var results: (FunctionCall) -> JSONValue? = { _ in .null }
    private(set) var drawRandom: () -> UInt64 = { 0 }

    @exclusivity(unchecked) var known: [MacroValue]
    /// What macros gave, as conditions compare it.
    let compared: UnsafeMutablePointer<ComparedValue>
    /// Texts of compared values that are not in the line.
    @exclusivity(unchecked) var texts = LineBuffer(capacity: 256)
    /// Where the members are that macros read.
    let places: UnsafeMutablePointer<WantedMembers.Place>
    /// Whether the places are this event's.
    @exclusivity(unchecked) var hasPlaces = false
    /// A byte for each macro, then for each macro's compared value, then for each condition, then for each rule: whether it
    /// is known, and whether it holds.
    let states: UnsafeMutableBufferPointer<UInt8>
    let firstCompared: Int
    private let firstCondition: Int
    private let firstRule: Int
    /// Where the line begins; some byte without an event.
    @exclusivity(unchecked) private(set) var base: UnsafePointer<UInt8>

    static let unknown: UInt8 = 0
    static let fails: UInt8 = 1
    static let holds: UInt8 = 2

    init(_ container: CompiledContainer) {
        self.container = container
        let macros = container.macros.count
        known = Array(repeating: .null, count: macros)
        compared = .allocate(capacity: macros)
        compared.initialize(repeating: ComparedValue(), count: macros)
        places = .allocate(capacity: container.wanted.count)
        places.initialize(repeating: WantedMembers.Place(), count: container.wanted.count)
        firstCompared = macros
        firstCondition = firstCompared + macros
        firstRule = firstCondition + container.conditions.count
        // One more than needed, so that there is some byte.
        states = .allocate(capacity: firstRule + container.rules.count + 1)
        states.initialize(repeating: Evaluation.unknown)
        base = UnsafePointer(states.baseAddress.unsafelyUnwrapped)
    }

    deinit {
        compared.deallocate()
        places.deallocate()
        states.deallocate()
    }

    /// Turns to an event; nil for none.
    func begin(
        _ subject: Subject?, app: String, layer: DataLayer?, results: @escaping (FunctionCall) -> JSONValue?,
        random: @escaping () -> UInt64
    ) {
        self.subject = subject
        self.app = app
        self.layer = layer
        self.results = results
        drawRandom = random
        base = subject?.base ?? UnsafePointer(states.baseAddress.unsafelyUnwrapped)
        hasPlaces = false
        hasMissedEvent = false
        hasMissedFunction = false
        if !neededCalls.isEmpty { neededCalls = [] }
        if !texts.isEmpty { texts.removeAll(keepingCapacity: 1 << 16) }
        states.update(repeating: Evaluation.unknown)
    }

    @inline(__always)
    func firstHolding(_ rules: UnsafeMutableBufferPointer<Int32>) -> Int? {
        for rule in rules where holds(rule: Int(rule)) { return Int(rule) }
        return nil
    }

    @inline(__always)
    func holds(rule: Int) -> Bool {
        let state = states[firstRule + rule]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        let holds = work(outRule: rule)
        states[firstRule + rule] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }

    @inline(never)
    private func work(outRule rule: Int) -> Bool {
        for condition in container.rules[rule] where !holds(condition: Int(condition)) { return false }
        return true
    }

    @inline(__always)
    func holds(condition: Int) -> Bool {
        let state = states[firstCondition + condition]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        let holds = compare(container.conditionTable + condition)
        states[firstCondition + condition] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }
}
