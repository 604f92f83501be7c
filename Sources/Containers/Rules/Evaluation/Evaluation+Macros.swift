internal import Events
internal import Model

extension Evaluation {
    func value(of operand: CompiledOperand) -> MacroValue {
        switch operand {
        case .constant(let value): MacroValue(value)
        case .macro(let number): value(ofMacro: number)
        }
    }

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
        case .member(_, let standard): return member(container.nodes[number]) ?? MacroValue(standard)
        case .dataLayer(let names, let standard):
            return MacroValue(layer?.value(at: names) ?? standard)
        case .collection(let rules, let values):
            guard isEnabled(rules) else { return .null }
            return .value(.object(parameters(values)))
        case .value(let key): return value(ofKey: key) ?? .null
        case .function(let name, let parameters):
            return result(of: FunctionCall(function: name, parameters: .object(self.parameters(parameters))))
        case .denied:
            hasMissedFunction = true
            return .null
        case .event: return eventName()
        case .app: return .value(.string(app))
        case .language: return language().map { .value(.string($0)) } ?? .null
        case .level: return level().map { .value(.string($0.level.rawValue)) } ?? .null
        case .random: return .value(.integer(Int(truncatingIfNeeded: drawRandom() & 0x7FFF_FFFF)))
        }
    }

    private func isEnabled(_ rules: [Int]) -> Bool { rules.isEmpty || rules.contains { holds(rule: $0) } }

    /// The parameters of a call, or the values of a collection, evaluated.
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
        for path in [WantedMembers.locale, WantedMembers.deviceLocale] {
            if subject != nil, case .string(let locale)? = member(path)?.json(base),
                let language = AgentFacts.language(of: locale)
            {
                return language
            }
        }
        return AgentFacts.language(of: container.facts.locale ?? "C")
    }

    private func level() -> Severity? {
        for (path, scale) in WantedMembers.levels {
            switch member(path)?.json(base) {
            case .string(let text)?: if let found = Severity(text: text, in: scale) { return found }
            case .integer(let number)?: if let found = Severity(number, in: scale) { return found }
            default: break
            }
        }
        return nil
    }

    /// The container's value of a key, of the first collection that has it and whose rules hold, else its own; or nil.
    func value(ofKey key: String) -> MacroValue? {
        for number in container.collections {
            guard case .collection(let rules, let values) = container.macros[number],
                let found = values.first(where: { $0.key == key }), isEnabled(rules)
            else { continue }
            return value(of: found.operand)
        }
        return container.values.first { $0.key == key }.map { value(of: $0.operand) }
    }

    /// The member of the event at a node of the wanted ones; nil when there is none.
    private func member(_ node: Int) -> MacroValue? {
        guard let subject, node >= 0 else { return nil }
        findMembers(of: subject)
        return places[node].range.map { MacroValue(base, $0) }
    }

    private func member(_ path: [[UInt8]]) -> MacroValue? { member(container.wanted.node(at: path) ?? -1) }

    @inline(__always)
    private func findMembers(of subject: Subject) {
        guard !hasPlaces else { return }
        container.wanted.find(in: subject.base, to: subject.count, into: places)
        hasPlaces = true
    }

    /// The event's id as text; nil when it has none.
    func eventID() -> [UInt8]? { member(WantedMembers.id)?.text(base) }

    /// The name of the event, or of the push.
    private func eventName() -> MacroValue {
        (subject?.isPush == true ? member(WantedMembers.event) : member(container.nameNode)) ?? .null
    }

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
    /// Where loggers say how serious a line is; a member whose own name has the dots goes first.
    static let levels = Severity.usualMembers.flatMap { name -> [(path: [[UInt8]], scale: SeverityScale)] in
        let parts = name.split(separator: ".").map { Array($0.utf8) }
        return ([[name.bytes]] + (parts.count > 1 ? [parts] : [])).map { ($0, Severity.scale(of: name)) }
    }
    static let locale = ["locale".bytes]
    static let deviceLocale = ["device".bytes, "locale".bytes]
}
