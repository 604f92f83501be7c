public import Model

/// A call of a configured function (tm14), which gets it as `{"function": …, "parameters": {…}}`.
public struct FunctionCall: Sendable, Hashable {
    package let function: String
    /// Parameters by name, an object.
    public let parameters: JSONValue

    package init(function: String, parameters: JSONValue) {
        self.function = function
        self.parameters = parameters
    }

    /// What the function gets on its standard input.
    public var request: JSONValue { ["function": .string(function), "parameters": parameters] }
}

/// Runs functions. The evaluation of an event never waits: if a result is missing it ends and says which calls it
/// needs; the caller then waits for these, and evaluates the event again with the results.
///
/// It lives on the reader's loop: every call, and every answer, comes on that loop's thread.
public protocol FunctionCaller: AnyObject {
    /// A result that serves again (`cache`); nil where the function must be asked.
    func cachedResult(of call: FunctionCall) -> JSONValue?

    /// Asks the function.
    ///
    /// - Parameters:
    ///   - app: for whose event: apps whose calls wait take turns.
    ///   - answer: is called exactly once, never before this returns: with the result, or with null after an unknown
    ///     name, a timeout, an exit code or bad JSON, which the caller has counted by then.
    func call(_ call: FunctionCall, for app: String, answer: @escaping (JSONValue) -> Void)
}
