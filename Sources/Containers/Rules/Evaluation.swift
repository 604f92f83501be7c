internal import Model

/// Works out macros, conditions and rules of one container for one event at a time, each at most once, and only those that
/// are asked for.
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
    /// Calls whose results are missing; what was worked out meanwhile is not to be used while there are any.
    private(set) var neededCalls: [FunctionCall] = []
    /// Whether something asked for an event, and there was none.
    private(set) var hasMissedEvent = false

    private var subject: Subject?
    private var app = ""
    private var layer: DataLayer?
    private var results: (FunctionCall) -> JSONValue? = { _ in .null }
    private var drawRandom: () -> UInt64 = { 0 }

    @exclusivity(unchecked) private var known: [MacroValue]
    /// A byte for each macro, then for each condition, then for each rule: whether it is known, and whether it holds.
    private let states: UnsafeMutableBufferPointer<UInt8>
    private let firstCondition: Int
    private let firstRule: Int
    /// The event's own members, found once for each event.
    @exclusivity(unchecked) private var members: [RawMember] = []
    @exclusivity(unchecked) private var hasMembers = false
    private let placeholder = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

    private static let unknown: UInt8 = 0
    private static let fails: UInt8 = 1
    private static let holds: UInt8 = 2

    init(_ container: CompiledContainer) {
        self.container = container
        known = Array(repeating: .null, count: container.macros.count)
        firstCondition = container.macros.count
        firstRule = firstCondition + container.conditions.count
        states = .allocate(capacity: firstRule + container.rules.count)
        states.initialize(repeating: Evaluation.unknown)
        placeholder.initialize(to: 0)
    }

    deinit {
        states.deallocate()
        placeholder.deallocate()
    }

    /// Where the line begins; some byte without an event.
    @inline(__always) var base: UnsafePointer<UInt8> { subject?.base ?? UnsafePointer(placeholder) }

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
        hasMembers = false
        hasMissedEvent = false
        if !neededCalls.isEmpty { neededCalls = [] }
        states.update(repeating: Evaluation.unknown)
    }

    // MARK: Rules

    /// The first of these rules that holds.
    @inline(__always)
    func firstHolding(_ rules: [Int]) -> Int? {
        for rule in rules where holds(rule: rule) { return rule }
        return nil
    }

    /// Whether all conditions of a rule hold.
    @inline(__always)
    func holds(rule: Int) -> Bool {
        let state = states[firstRule + rule]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        var holds = true
        for condition in container.rules[rule] where !self.holds(condition: Int(condition)) {
            holds = false
            break
        }
        states[firstRule + rule] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }

    /// Whether a condition holds.
    @inline(__always)
    func holds(condition: Int) -> Bool {
        let state = states[firstCondition + condition]
        if state != Evaluation.unknown { return state == Evaluation.holds }
        let holds = compare(condition)
        states[firstCondition + condition] = holds ? Evaluation.holds : Evaluation.fails
        return holds
    }

    private func compare(_ condition: Int) -> Bool {
        let value = value(ofMacro: container.conditions[condition].macro)
        if let other = container.conditions[condition].comparandMacro {
            return container.conditions[condition].holds(value, self.value(ofMacro: other), in: base)
        }
        return container.conditions[condition].holds(value, in: base)
    }

    // MARK: Macros

    /// The value of an operand.
    func value(of operand: CompiledOperand) -> MacroValue {
        switch operand {
        case .constant(let value): MacroValue(value)
        case .macro(let number): value(ofMacro: number)
        }
    }

    /// The value of a macro.
    @inline(__always)
    func value(ofMacro number: Int) -> MacroValue {
        if states[number] != Evaluation.unknown { return known[number] }
        let value = evaluate(number)
        states[number] = Evaluation.holds
        known[number] = value
        return value
    }

    private func evaluate(_ number: Int) -> MacroValue {
        if subject == nil, container.macros[number].needsEvent {
            hasMissedEvent = true
            return .null
        }
        switch container.macros[number] {
        case .constant(let value): return MacroValue(value)
        case .member(let names, let standard): return member(names) ?? MacroValue(standard)
        case .dataLayer(let names, let standard):
            return MacroValue(layer?.value(at: names) ?? standard)
        case .collection(let rules, let values):
            guard isEnabled(rules) else { return .null }
            return .value(object(values))
        case .value(let key): return value(ofKey: key) ?? .null
        case .function(let name, let parameters):
            return result(of: FunctionCall(function: name, parameters: .object(self.parameters(parameters))))
        case .event: return eventName()
        case .app: return .value(.string(app))
        case .language: return language().map { .value(.string($0)) } ?? .null
        case .random: return .value(.integer(Int(truncatingIfNeeded: drawRandom() & 0x7FFF_FFFF)))
        }
    }

    private func isEnabled(_ rules: [Int]) -> Bool { rules.isEmpty || firstHolding(rules) != nil }

    private func object(_ values: [(key: String, operand: CompiledOperand)]) -> JSONValue {
        .object(values.map { JSONValue.Member($0.key, value(of: $0.operand).json(base)) })
    }

    /// The parameters of a call, worked out.
    func parameters(_ operands: [(key: String, operand: CompiledOperand)]) -> [JSONValue.Member] {
        operands.map { JSONValue.Member($0.key, value(of: $0.operand).json(base)) }
    }

    private func result(of call: FunctionCall) -> MacroValue {
        // A parameter that is missing itself makes it another call, next time.
        guard neededCalls.isEmpty else { return .null }
        if let result = results(call) { return MacroValue(result) }
        neededCalls.append(call)
        return .null
    }

    private func language() -> String? {
        for names in [["locale".bytes], ["device".bytes, "locale".bytes]] {
            if subject != nil, case .string(let locale)? = member(names)?.json(base),
                let language = AgentFacts.language(of: locale)
            {
                return language
            }
        }
        return container.locale.flatMap { AgentFacts.language(of: $0) }
    }

    // MARK: Values

    /// The container's value of a key: that of the first collection that has it and whose rules hold, else its own.
    ///
    /// - Returns: nil when there is none.
    func value(ofKey key: String) -> MacroValue? {
        for number in container.collections {
            guard case .collection(let rules, let values) = container.macros[number],
                let found = values.first(where: { $0.key == key }), isEnabled(rules)
            else { continue }
            return value(of: found.operand)
        }
        return container.values.first { $0.key == key }.map { value(of: $0.operand) }
    }

    // MARK: Members

    /// The member of the event at these names; nil when there is none.
    private func member(_ names: [[UInt8]]) -> MacroValue? {
        guard let subject else { return nil }
        findMembers()
        var found: Range<Int>?
        for member in members where RawJSON.hasName(member, names[0], in: subject.base) { found = member.value }
        for name in names.dropFirst() {
            guard let object = found else { return nil }
            found = RawJSON.find(name, in: subject.base, from: object.lowerBound, to: object.upperBound)?.value
        }
        return found.map { MacroValue(subject.base, $0) }
    }

    private func findMembers() {
        guard !hasMembers, let subject else { return }
        members.removeAll(keepingCapacity: true)
        var walk = RawWalk(subject.base, from: 0, to: subject.count)
        while let member = walk.next() { members.append(member) }
        hasMembers = true
    }

    /// The event's id as text; nil when it has none.
    func eventID() -> [UInt8]? { member(Evaluation.idPath)?.text(base) }

    /// The name of the event, or of the push.
    private func eventName() -> MacroValue {
        member(subject?.isPush == true ? Evaluation.eventPath : Evaluation.namePath) ?? .null
    }

    /// Gives the name of the event as text.
    func withEventName<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        let name = eventName()
        if case .text(let range) = name {
            return body(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count))
        }
        return (name.text(base) ?? []).withUnsafeBufferPointer { body($0) }
    }

    private static let idPath = ["id".bytes]
    private static let namePath = [RuleEngine.nameBytes]
    private static let eventPath = [RuleEngine.eventBytes]
}
