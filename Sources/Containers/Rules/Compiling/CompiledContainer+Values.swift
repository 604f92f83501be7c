package import Model

extension CompiledContainer {
    /// The value of a key, without an event.
    package enum Valuation: Sendable, Equatable {
        /// The container does not have the key.
        case missing
        /// The value.
        case value(JSONValue)
        /// The value depends on an event, so it is of no use for settings and apps.
        case needsEvent
        /// Results of functions are missing; ask again with them.
        case needs([FunctionCall])
    }

    /// The keys that have values: the container's own, then those of its collections.
    public var keys: [String] {
        var keys: [String] = []
        var known: Set<String> = []
        for value in document.values + document.macros.flatMap(\.collected)
        where known.insert(value.key).inserted {
            keys.append(value.key)
        }
        return keys
    }

    /// The value of a key: that of the first collection that has the key and whose rules hold, otherwise the
    /// container's own.
    ///
    /// - Parameters:
    ///   - functions: functions of the app that asks; other functions of apps give their defaults.
    ///   - results: results of functions; nil for one that is not known yet.
    package func value(
        ofKey key: String, askingApp functions: AppFunctions = AppFunctions(),
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Valuation {
        let evaluation = Evaluation(self)
        evaluation.appFunctions = functions
        evaluation.begin(nil, app: "", layer: nil, results: results, random: { 0 })
        let value = evaluation.value(ofKey: key)
        if evaluation.missed.event { return .needsEvent }
        if !evaluation.neededCalls.isEmpty { return .needs(evaluation.neededCalls) }
        return value.map { .value($0.json(evaluation.base)) } ?? .missing
    }
}
