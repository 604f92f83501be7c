public import EventLoops
internal import Events
public import Model

/// What becomes part of data layers.
extension RuleEngine {
    /// The name of the member for an event's name.
    static let nameBytes = WantedMembers.name[0]

    /// Pushes an event's name, properties and other members, as far as something in force reads them.
    func push(_ line: UnsafeRawBufferPointer, _ app: String) {
        guard !pushed.isEmpty, let base = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            return
        }
        // What an event says about consent concerns this event: in the layer it would concern all later ones.
        let members = pushed.members(of: base, to: line.count).filter { !ConsentStatement.isMember($0.key) }
        if !members.isEmpty {
            pushMembers(members, app)
        }
    }

    /// What an app's data layer says about consent; nil for nothing.
    public func consent(of app: String) -> ConsentStatement? { layers.layers[app]?.consent }

    /// Pushes members, without what is hidden.
    private func pushMembers(_ members: [JSONValue.Member], _ app: String) {
        layers.push(members, of: app, hiding: hidden(of: app))
        note(refusedPushes: layers.refused)
    }

    /// Takes only what a line `{"type": "data_layer", …}` says about consent. No tag fires.
    public func pushConsent(_ line: UnsafeRawBufferPointer, app: String) {
        let members = (pushedMembers(line)?.members ?? []).filter { ConsentStatement.isMember($0.key) }
        if !members.isEmpty {
            pushMembers(members, app)
        }
    }

    /// The object of a pushed line, with its members but `type`. If it cannot be read, but may say something
    /// about consent, this is a refusal. Nil for nothing.
    private func pushedMembers(
        _ line: UnsafeRawBufferPointer
    ) -> (members: [JSONValue.Member], object: UnsafeRawBufferPointer)? {
        guard let base = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let start = line.firstIndex(of: UInt8(ascii: "{")) ?? line.count
        let range = start..<RawWalk.valueEnd(base, start, line.count)
        let object = UnsafeRawBufferPointer(rebasing: line[range])
        if case .object(let members) = RawJSON.value(base, range) {
            return (members.filter { $0.key != "type" }, object)
        }
        return ConsentStatement(ofLine: object).isSilent ? nil : ([ConsentStatement.refusal], object)
    }

    /// Handles a line `{"type": "data_layer", …}`: all members but `type` are pushed. If one is an `event`,
    /// tags that call functions fire; there is no event that other tags could change.
    ///
    /// - Returns: `kept`, or `needs` before anything has fired.
    public func push(
        _ line: UnsafeRawBufferPointer, app: String, at now: Timestamp,
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Fate {
        reset()
        guard let (members, object) = pushedMembers(line) else { return .kept }
        pushMembers(members, app)
        guard case .string(let name)? = JSONValue.object(members)["event"],
            let base = object.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return .kept }
        let subject = Evaluation.Subject(base: base, count: object.count, isPush: true)
        var made: [FunctionCall] = []
        var offered: [AppCall] = []
        for (index, evaluation) in evaluations.enumerated() where evaluation.container.concerns(app) {
            evaluation.begin(
                subject, app: app, layer: layer(of: app, for: evaluation.container), results: results,
                random: random)
            let candidates = Array(name.utf8).withUnsafeBufferPointer {
                evaluation.container.index.tags(for: $0)
            }
            let before = firings.count
            defer { countFired(index, since: before) }
            for (tag, _) in fire(evaluation, candidates) {
                switch evaluation.container.tags[tag].action {
                case .function(let name, let parameters): made.append(evaluation.call(name, parameters))
                case .offer(let name, let parameters):
                    offered.append(
                        AppCall(
                            container: evaluation.container.document.id,
                            call: evaluation.call(name, parameters)))
                default: continue
                }
                firings.append(Firing(container: index, tag: tag))
            }
            guard evaluation.neededCalls.isEmpty else { return .needs(evaluation.neededCalls) }
        }
        for call in made { decisions.call(call) }
        for call in offered { decisions.offer(call) }
        return .kept
    }
}
