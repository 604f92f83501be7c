internal import Events
internal import Model

extension Evaluation {
    /// The value of an operand.
    func value(of operand: CompiledOperand) -> MacroValue {
        switch operand {
        case .constant(let value): MacroValue(value)
        case .macro(let number): value(ofMacro: number)
        }
    }

    /// The value of a macro, computed at most once.
    @inline(__always)
    func value(ofMacro number: Int) -> MacroValue {
        if states[number] != Evaluation.unknown { return known[number] }
        let value = evaluate(number)
        states[number] = Evaluation.holds
        known[number] = value
        return value
    }

    /// Whether a function's macro was evaluated, and its function gave no answer, or null. A default that
    /// takes the answer's place is no answer: hiding must not depend on it.
    func isUnanswered(macro number: Int) -> Bool {
        guard states[number] != Evaluation.unknown else { return false }
        switch container.macros[number] {
        case .denied, .appFunction: return true
        case .function(let name, let parameters, let standard) where standard != .null:
            return (results(call(name, parameters)) ?? .null) == .null
        default: return known[number].isNull
        }
    }

    /// Computes the value of a macro. Macros that need an event give null without one.
    private func evaluate(_ number: Int) -> MacroValue {
        if subject == nil, container.macros[number].needsEvent {
            if let standard = container.macros[number].standard { return MacroValue(standard) }
            missed.event = true
            return .null
        }
        switch container.macros[number] {
        case .constant(let value): return MacroValue(value)
        case .member(_, let standard): return member(container.nodes[number]) ?? MacroValue(standard)
        case .dataLayer(let names, let standard):
            return MacroValue(layer?.value(at: names) ?? standard)
        case .collection(let rules, let values):
            guard isEnabled(rules) else { return .null }
            return .value(.object(parameters(values)))
        case .value(let key): return value(ofKey: key) ?? .null
        case .function(let name, let parameters, let standard):
            return result(of: call(name, parameters), from: results, else: standard)
        case .appFunction(let name, let parameters, let standard):
            guard appFunctions.names.contains(name) else { return MacroValue(standard) }
            return result(of: call(name, parameters), from: appFunctions.results, else: standard)
        case .denied(let standard):
            missed.function = true
            return MacroValue(standard)
        case .event: return eventName()
        case .app: return .value(.string(app))
        case .language: return language().map { .value(.string($0)) } ?? .null
        case .level: return level().map { .value(.string($0.level.rawValue)) } ?? .null
        case .severity: return level().map { .value(.integer(Severity($0.level).number)) } ?? .null
        case .message: return message()
        case .file: return file.isEmpty ? .null : .value(.string(file))
        case .random: return .value(.integer(Int(truncatingIfNeeded: drawRandom() & 0x7FFF_FFFF)))
        }
    }

    /// Whether a collection is enabled: it has no rules, or one of them holds.
    private func isEnabled(_ rules: [Int]) -> Bool { rules.isEmpty || rules.contains { holds(rule: $0) } }

    /// Parameters of a call, or values of a collection, evaluated.
    func parameters(_ operands: [(key: String, operand: CompiledOperand)]) -> [JSONValue.Member] {
        operands.map { JSONValue.Member($0.key, value(of: $0.operand).json(base)) }
    }

    /// A call, with its parameters evaluated.
    func call(_ name: String, _ parameters: [(key: String, operand: CompiledOperand)]) -> FunctionCall {
        FunctionCall(function: name, parameters: .object(self.parameters(parameters)))
    }

    /// The result of a function; `standard` in place of null. Null if the result is not known yet, in which
    /// case the call is added to `neededCalls`.
    private func result(
        of call: FunctionCall, from results: (FunctionCall) -> JSONValue?, else standard: JSONValue
    ) -> MacroValue {
        // While the result of another call is missing, this call's parameters may be wrong, so it is not
        // made. The evaluation is repeated with that result, and finds this call then.
        guard neededCalls.isEmpty else { return .null }
        if let result = results(call) { return MacroValue(result == .null ? standard : result) }
        neededCalls.append(call)
        return .null
    }

    /// Language of the event's locale, the device's or the agent's.
    private func language() -> String? {
        for path in [WantedMembers.locale, WantedMembers.deviceLocale] {
            if subject != nil, case .string(let locale)? = member(path)?.json(base),
                let language = AgentFacts.language(of: locale)
            {
                return language
            }
        }
        return AgentFacts.language(of: container.facts.locale ?? "C")
    }

    /// Severity of the event, from the first of the usual members that has one.
    private func level() -> Severity? {
        for (path, reading) in WantedMembers.levels {
            let text: String? =
                switch member(path)?.json(base) {
                case .string(let text)?: text
                case .integer(let number)?: String(number)
                default: nil
                }
            if let text, let found = Severity(text: text, as: reading, isGELF: isGELF()) { return found }
        }
        return nil
    }

    /// Whether the event is GELF, in which levels are syslog's.
    private func isGELF() -> Bool {
        guard case .string(let version)? = member(WantedMembers.version)?.json(base) else { return false }
        return Severity.isGELF(version: version)
    }

    /// The first text among the members in which loggers write their message.
    private func message() -> MacroValue {
        for path in WantedMembers.messages {
            switch member(path) {
            case .text(let range)?: return .text(range)
            case .value(.string(let text))?: return .value(.string(text))
            default: break
            }
        }
        return .null
    }

    /// The container's value of a key: of the first collection that has it and whose rules hold, otherwise
    /// the container's own; nil if neither has the key.
    func value(ofKey key: String) -> MacroValue? {
        for number in container.collections {
            guard case .collection(let rules, let values) = container.macros[number],
                let found = values.first(where: { $0.key == key }), isEnabled(rules)
            else { continue }
            return value(of: found.operand)
        }
        return container.values.first { $0.key == key }.map { value(of: $0.operand) }
    }

    /// The member of the event at a node of the wanted ones; nil if it is missing.
    private func member(_ node: Int) -> MacroValue? {
        guard let subject, node >= 0 else { return nil }
        findMembers(of: subject)
        return ranges[node].range.map { MacroValue(base, $0) }
    }

    /// The member of the event at a path; nil if it is missing.
    private func member(_ path: [[UInt8]]) -> MacroValue? { member(container.wanted.node(at: path) ?? -1) }

    /// Finds all wanted members in one walk, when the first is asked for.
    @inline(__always)
    private func findMembers(of subject: Subject) {
        guard !hasRanges else { return }
        container.wanted.find(in: subject.base, to: subject.count, into: ranges)
        hasRanges = true
    }

    /// The event's id as text; nil if it has no id.
    func eventID() -> [UInt8]? { member(WantedMembers.id)?.text(base) }

    /// The name of the event, or of the push.
    private func eventName() -> MacroValue {
        (subject?.isPush == true ? member(WantedMembers.event) : member(container.nameNode)) ?? .null
    }

    /// Calls `body` with the event's name, without copying it if possible.
    func withEventName<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        let name = eventName()
        if case .text(let range) = name {
            return body(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count))
        }
        return (name.text(base) ?? []).withUnsafeBufferPointer { body($0) }
    }
}

extension WantedMembers {
    static let name = ["name".bytes]
    static let event = ["event".bytes]
    static let id = ["id".bytes]
    /// The member by which GELF is recognised.
    static let version = ["version".bytes]
    /// The members in which loggers write the severity. A name with dots comes before the same path in
    /// objects.
    static let levels = Severity.usualMembers.flatMap {
        name -> [(path: [[UInt8]], reading: Severity.Reading)] in
        let parts = name.split(separator: ".").map { Array($0.utf8) }
        return ([[name.bytes]] + (parts.count > 1 ? [parts] : [])).map { ($0, Severity.reading(of: name)) }
    }
    /// The members in which loggers write the text for people.
    static let messages = [
        ["message".bytes], ["msg".bytes], ["@m".bytes], ["@mt".bytes], ["Message".bytes], ["MESSAGE".bytes],
        ["properties".bytes, "message".bytes], ["properties".bytes, "msg".bytes],
    ]
    static let locale = ["locale".bytes]
    static let deviceLocale = ["device".bytes, "locale".bytes]
}
