internal import Events
internal import Model

/// Evaluates one container's macros, conditions and rules for an event, each at most once and only if
/// something asks for it.
///
/// It belongs to one thread. Its results are valid until the next `begin`. Exclusive access to what each
/// event changes is not checked at run time: no code that does it can reach the evaluation meanwhile.
final class Evaluation {
    /// An event, or a push into the data layer.
    struct Subject {
        /// The line: a JSON object that the events' pass accepted.
        var base: UnsafePointer<UInt8>
        /// Length of the line.
        var count: Int
        /// Whether the line is a push, whose name is its member `event`.
        var isPush = false
    }

    /// What an evaluation may lack.
    struct Missed {
        /// An event was needed, and there was no event.
        var event = false
        /// A function was needed that may not be called.
        var function = false
    }

    /// The container.
    let container: CompiledContainer
    /// Calls whose results are missing. While there are any, other results must not be used.
    @exclusivity(unchecked) var neededCalls: [FunctionCall] = []
    /// What something needed and did not get.
    @exclusivity(unchecked) var missed = Missed()
    /// Functions of the app that asks for a value; none for events. To be set before `begin`.
    var appFunctions = AppFunctions()

    /// The event; nil for values without one.
    @exclusivity(unchecked) private(set) var subject: Subject?
    /// The event's app, and the file of its line; empty if there is no file.
    @exclusivity(unchecked) private var origin = (app: "", file: "")
    /// The app.
    var app: String { origin.app }
    /// The file.
    var file: String { origin.file }
    /// The app's data layer; nil if the container does not read it.
    @exclusivity(unchecked) private(set) var layer: DataLayer?
    /// Gives results of functions; nil for one that is not known yet.
    @exclusivity(unchecked) private(set) var results: (FunctionCall) -> JSONValue? = { _ in .null }
    /// Gives random numbers.
    @exclusivity(unchecked) private(set) var drawRandom: () -> UInt64 = { 0 }

    /// Values of macros; `states` says which are valid.
    @exclusivity(unchecked) var known: [MacroValue]
    /// Values of macros as conditions compare them.
    let compared: UnsafeMutablePointer<ComparedValue>
    /// Texts of compared values that are not in the line.
    @exclusivity(unchecked) var texts = LineBuffer(capacity: 256)
    /// Where the members are that macros read.
    let ranges: UnsafeMutablePointer<WantedMembers.ValueRange>
    /// Whether `ranges` are those of this event.
    @exclusivity(unchecked) var hasRanges = false
    /// What is known: a byte for each macro, then for each macro's compared value, for each condition and for
    /// each rule. One array, so that one memset forgets all.
    let states: UnsafeMutableBufferPointer<UInt8>
    /// Index of the first compared value in `states`.
    let firstCompared: Int
    /// Index of the first condition.
    private let firstCondition: Int
    /// Index of the first rule.
    private let firstRule: Int
    /// Beginning of the line; without an event, any byte.
    @exclusivity(unchecked) private(set) var base: UnsafePointer<UInt8>

    /// State of a condition, rule or compared value that was not evaluated yet.
    static let unknown: UInt8 = 0
    /// State of a condition or rule that does not hold.
    static let fails: UInt8 = 1
    /// State of a condition or rule that holds, and of a compared value that was evaluated.
    static let holds: UInt8 = 2

    /// An evaluation for a container; `begin` must follow.
    init(_ container: CompiledContainer) {
        self.container = container
        let macros = container.macros.count
        known = Array(repeating: .null, count: macros)
        compared = .allocate(capacity: macros)
        compared.initialize(repeating: ComparedValue(), count: macros)
        ranges = .allocate(capacity: container.wanted.count)
        ranges.initialize(repeating: WantedMembers.ValueRange(), count: container.wanted.count)
        firstCompared = macros
        firstCondition = firstCompared + macros
        firstRule = firstCondition + container.conditions.count
        // One byte more than needed, so that `base` has an address without an event.
        states = .allocate(capacity: firstRule + container.rules.count + 1)
        states.initialize(repeating: Evaluation.unknown)
        base = UnsafePointer(states.baseAddress.unsafelyUnwrapped)
    }

    deinit {
        compared.deallocate()
        ranges.deallocate()
        states.deallocate()
    }

    /// Begins with an event, or without one.
    func begin(
        _ subject: Subject?, app: String, file: String = "", layer: DataLayer?,
        results: @escaping (FunctionCall) -> JSONValue?, random: @escaping () -> UInt64
    ) {
        self.subject = subject
        origin = (app, file)
        self.layer = layer
        self.results = results
        drawRandom = random
        base = subject?.base ?? UnsafePointer(states.baseAddress.unsafelyUnwrapped)
        hasRanges = false
        missed = Missed()
        if !neededCalls.isEmpty {
            neededCalls = []
        }
        if !texts.isEmpty {
            texts.removeAll(keepingCapacity: 1 << 16)
        }
        states.update(repeating: Evaluation.unknown)
    }

    /// The first of some rules that holds.
    @inline(__always)
    func firstHolding(_ rules: UnsafeMutableBufferPointer<Int32>) -> Int? {
        for rule in rules where holds(rule: Int(rule)) { return Int(rule) }
        return nil
    }

    /// Whether a rule holds.
    @inline(__always)
    func holds(rule: Int) -> Bool {
        let state = states[firstRule + rule]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        let holds = work(outRule: rule)
        states[firstRule + rule] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }

    /// Evaluates a rule: cheap conditions come first, and the first that does not hold decides.
    @inline(never)
    private func work(outRule rule: Int) -> Bool {
        for condition in container.rules[rule] where !holds(condition: Int(condition)) { return false }
        return true
    }

    /// Whether a condition holds.
    @inline(__always)
    func holds(condition: Int) -> Bool {
        let state = states[firstCondition + condition]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        let holds = compare(container.conditionTable + condition)
        states[firstCondition + condition] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }
}
