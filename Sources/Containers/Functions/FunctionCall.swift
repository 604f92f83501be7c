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

extension FunctionCall {
    /// Name of the call for an app's answer, 16 hexadecimal digits: the same for the same function and
    /// parameters, so that an answer needs no memory of the question.
    package var id: String {
        let digits = String(Sampling.hash("\(request)".bytes), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// Functions of an app that asks for a value.
package struct AppFunctions {
    /// Names of the functions.
    let names: Set<String>
    /// Gives the results that the app has sent; nil for one that it must be asked for.
    let results: (FunctionCall) -> JSONValue?

    /// Functions of an app; none, if nobody can be asked.
    package init(_ names: Set<String> = [], results: @escaping (FunctionCall) -> JSONValue? = { _ in .null })
    {
        self.names = names
        self.results = results
    }
}

/// A call of a function that the app of an event has, asked for by a tag.
public struct AppCall: Sendable, Hashable {
    /// Id of the container.
    public let container: String
    /// The call.
    public let call: FunctionCall
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
