internal import Model

/// A compiled macro: names of members as bytes, other macros and rules by their numbers.
enum CompiledMacro {
    /// Always this value.
    case constant(JSONValue)
    /// A member of the event, by its path from the top.
    case member(names: [[UInt8]], default: JSONValue)
    /// A value of the app's data layer.
    case dataLayer(names: [String], default: JSONValue)
    /// The values of a collection while one of the rules holds; always if it has no rules.
    case collection(rules: [Int], values: [(key: String, operand: CompiledOperand)])
    /// The container's value of a key.
    case value(key: String)
    /// The result of a function of the configuration.
    case function(
        name: String, parameters: [(key: String, operand: CompiledOperand)], default: JSONValue)
    /// The result of a function of the app that asks for a value. Where nobody asks, as for events, there is
    /// none.
    case appFunction(
        name: String, parameters: [(key: String, operand: CompiledOperand)], default: JSONValue)
    /// A function that the configuration does not let the document call: it has no result.
    case denied(default: JSONValue)
    /// The event's name; for a push its member `event`.
    case event
    /// The app that the agent knows, whatever the event says.
    case app
    /// The file of the event's line, as the reader names it.
    case file
    /// Computed from several members, or drawn.
    case language, level, severity, message, random

    /// Whether the macro has no value without an event. What other macros need is checked when they are
    /// evaluated.
    var needsEvent: Bool {
        switch self {
        case .member, .dataLayer, .event, .app, .file, .level, .severity, .message, .random: true
        case .constant, .collection, .value, .function, .appFunction, .denied, .language: false
        }
    }

    /// The value of `default`; nil for a macro without a default.
    var standard: JSONValue? {
        switch self {
        case .member(_, let value), .dataLayer(_, let value): value == .null ? nil : value
        default: nil
        }
    }

    /// The members of events that the macro reads.
    var members: [[[UInt8]]] {
        switch self {
        case .member(let names, _): [names]
        case .language: [WantedMembers.locale, WantedMembers.deviceLocale]
        case .level, .severity: WantedMembers.levels.map(\.path) + [WantedMembers.version]
        case .message: WantedMembers.messages
        case .constant, .dataLayer, .collection, .value, .function, .appFunction, .denied, .event, .app,
            .file, .random:
            []
        }
    }
}

/// A constant, or a macro by its number.
enum CompiledOperand {
    case constant(JSONValue)
    case macro(Int)
}

/// A compiled tag.
struct CompiledTag {
    /// Name of the tag.
    let name: String
    /// Numbers of the rules by which it fires.
    let rules: [Int]
    /// Numbers of its blocking rules.
    let blockingRules: [Int]
    /// The action.
    let action: Action
    /// The ready patterns that it looks for, if it does nothing else; otherwise none.
    let patterns: ReadyPatterns

    init(name: String, rules: [Int], blockingRules: [Int], action: Action) {
        self.name = name
        self.rules = rules
        self.blockingRules = blockingRules
        self.action = action
        patterns = if case .hide(_, .scrub(let scrubber)) = action { scrubber.onlyReady } else { .none }
    }

    /// The actions; see `Tag.Action`.
    enum Action {
        /// Sends the event to these destinations.
        case ship([String])
        case discard
        /// Keeps a share of events, decided by the value of `key` or, without one, by the event's id.
        case sample(rate: Double, key: CompiledOperand?)
        /// `text` is the JSON of a constant value, made once.
        case set(names: [[UInt8]], value: CompiledOperand, text: [UInt8]?)
        /// Gives the member at a path another name.
        case rename(names: [[UInt8]], to: String)
        /// Removes members from the event.
        case remove([PathSteps])
        /// Redacts, hashes or scrubs members.
        case hide([PathSteps], Hiding)
        /// Sets the priority.
        case prioritise(Priority)
        /// `throttle` is the number among the container's throttles.
        case throttle(throttle: Int, events: Int, seconds: Int, key: CompiledOperand?)
        case function(name: String, parameters: [(key: String, operand: CompiledOperand)])
        /// Gives a call to the app of the event, if it listens.
        case offer(name: String, parameters: [(key: String, operand: CompiledOperand)])
        /// Calls a function that the configuration does not let the document call: does nothing.
        case denied

        /// Whether the action needs values, for which functions may have to be asked.
        var needsValues: Bool {
            switch self {
            case .sample(_, .some), .throttle(_, _, _, .some), .set(_, _, nil), .function, .offer: true
            default: false
            }
        }

        /// Whether the action is a call that is not allowed.
        var isDenied: Bool { if case .denied = self { true } else { false } }

        /// Whether the action hides members from those who get the event.
        var hides: Bool { if case .hide = self { true } else { false } }
    }

    /// How members are hidden.
    enum Hiding {
        /// Replaced by a JSON text; removed if it is nil.
        case redact(with: [UInt8]?)
        /// Replaced by a digest.
        case hash(Hashing)
        /// What patterns match in their texts is replaced.
        case scrub(Scrubber)

        /// The patterns; nil for other kinds.
        var scrubber: Scrubber? { if case .scrub(let scrubber) = self { scrubber } else { nil } }
    }
}
