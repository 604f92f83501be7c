internal import Model

/// A macro made ready: names of members as bytes, other macros and rules by their places.
enum CompiledMacro {
    case constant(JSONValue)
    /// A member of the event, from its top.
    case member(names: [[UInt8]], default: JSONValue)
    case dataLayer(names: [String], default: JSONValue)
    case collection(rules: [Int], values: [(key: String, operand: CompiledOperand)])
    case value(key: String)
    case function(name: String, parameters: [(key: String, operand: CompiledOperand)])
    /// What a function would give that the configuration does not let it call: null.
    case denied
    /// The event's name; that of a push is its `event`.
    case event
    /// The app that the agent knows, whatever the event says.
    case app
    case language, level, random

    /// Whether it has no value without an event. What other macros need is looked at where they are.
    var needsEvent: Bool {
        switch self {
        case .member, .dataLayer, .event, .app, .level, .random: true
        case .constant, .collection, .value, .function, .denied, .language: false
        }
    }

    var members: [[[UInt8]]] {
        switch self {
        case .member(let names, _): [names]
        case .language: [WantedMembers.locale, WantedMembers.deviceLocale]
        case .level: WantedMembers.levels.map(\.path)
        case .constant, .dataLayer, .collection, .value, .function, .denied, .event, .app, .random: []
        }
    }
}

/// A constant, or a macro by its place.
enum CompiledOperand {
    case constant(JSONValue)
    case macro(Int)
}

struct CompiledTag {
    let name: String
    let rules: [Int]
    let blockingRules: [Int]
    let action: Action

    enum Action {
        case ship([String])
        case discard
        case sample(rate: Double, key: CompiledOperand?)
        /// The text is the value's where that is a constant.
        case set(names: [[UInt8]], value: CompiledOperand, text: [UInt8]?)
        case rename(names: [[UInt8]], to: String)
        case hide([PathSteps], Hiding)
        case prioritise(Priority)
        case throttle(place: Int, events: Int, seconds: Int, key: CompiledOperand?)
        case function(name: String, parameters: [(key: String, operand: CompiledOperand)])
        case denied

        var isDenied: Bool { if case .denied = self { true } else { false } }

        /// Whether it takes members away from whoever gets the event.
        var hides: Bool { if case .hide = self { true } else { false } }
    }

    enum Hiding {
        case redact(with: [UInt8]?)
        case hash(Hashing)
        case scrub(Scrubber)

        var scrubber: Scrubber? { if case .scrub(let scrubber) = self { scrubber } else { nil } }
    }
}
