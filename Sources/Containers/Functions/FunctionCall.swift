public import Model

/// A call of a function. The function's program gets it as `{"function": …, "parameters": {…}}`.
public struct FunctionCall: Sendable, Hashable {
    /// Name of the function in the configuration.
    package let function: String
    /// Parameters by name, an object.
    public let parameters: JSONValue

    /// A call.
    package init(function: String, parameters: JSONValue) {
        self.function = function
        self.parameters = parameters
    }

    /// What the program gets on its standard input.
    public var request: JSONValue { ["function": .string(function), "parameters": parameters] }
}

/// Runs functions. The evaluation of an event never waits: if a result is missing, the evaluation ends and
/// returns the calls that it needs. The caller waits for them, and evaluates the event again with the
/// results.
///
/// All calls and answers are on the thread of the reader's loop.
public protocol FunctionCaller: AnyObject {
    /// Whether the configuration has functions.
    var hasFunctions: Bool { get }

    /// A cached result (setting `cache`); nil if the function must be called.
    func cachedResult(of call: FunctionCall) -> JSONValue?

    /// Calls a function.
    ///
    /// - Parameters:
    ///   - app: the app of the event. Apps whose calls wait take turns.
    ///   - answer: called exactly once, never before this returns, with the result; or with null for an
    ///     unknown name, a timeout, an exit code or invalid JSON, which are counted by then.
    func call(_ call: FunctionCall, for app: String, answer: @escaping (JSONValue) -> Void)
}
