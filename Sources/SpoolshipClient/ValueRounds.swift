/// The rounds by which the agent evaluates a value whose macros call functions of this app: it names a call,
/// the app answers, and asks again with all answers so far. The agent remembers nothing in between.
///
/// A value of its own, without a socket.
struct ValueRounds {
    /// Most answers, as the agent allows them. They bound the rounds, too, because each round adds one.
    static let most = 32

    /// The beginning of each question: what is asked for, by whom.
    private let head: String
    /// The answers so far, as JSON, by the ids of their calls.
    private var answers: [(id: String, result: String)] = []

    /// Rounds for a value.
    init(_ key: String, type: String, container: String, functions: [String]) {
        let names = functions.sorted().map(EventLine.quoted).joined(separator: ",")
        head =
            "{\"key\":\(EventLine.quoted(key)),\"type\":\"\(type)\","
            + "\"container\":\(EventLine.quoted(container)),\"functions\":[\(names)]"
    }

    /// The body of the next question.
    var question: String {
        let answers = answers.map { "\(EventLine.quoted($0.id)):\($0.result)" }.joined(separator: ",")
        return "\(head),\"answers\":{\(answers)}}"
    }

    /// Takes the agent's response to a question.
    ///
    /// - Parameter handler: the app's function of a name; nil if the app has none.
    /// - Returns: whether the response has the value; otherwise `question` is to be asked.
    /// - Throws: `agentUnavailable` for calls that no agent would ask for, `invalidEvent` for an answer that
    ///   is not JSON.
    mutating func take(
        _ response: [String: JSONText.Value], handler: (String) -> FunctionCallMacroHandler?
    ) throws(AnalyticsError) -> Bool {
        guard case .array(let calls)? = response["calls"], !calls.isEmpty else { return true }
        for call in calls {
            guard case .object(let call) = call, case .string(let id)? = call["id"],
                case .string(let name)? = call["function"], let function = handler(name)
            else {
                throw AnalyticsError(
                    .agentUnavailable, "the agent asks for a function that this app has not registered")
            }
            guard answers.count < ValueRounds.most, !answers.contains(where: { $0.id == id }) else {
                throw AnalyticsError(
                    .agentUnavailable,
                    "the agent asks for \(name) again, or for more than \(ValueRounds.most) answers")
            }
            let result = function(name, DataLayerValue(call["parameters"] ?? .object([:])))
            answers.append((id, try EventLine.json(result ?? .null, for: name)))
        }
        return false
    }
}
