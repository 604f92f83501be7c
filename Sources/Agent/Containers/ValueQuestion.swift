internal import Containers
internal import Control
internal import Model

/// An app's question for a value, with the answers that its functions have given so far.
///
/// The agent remembers nothing between two questions: where it meets a function of the app without an
/// answer, it returns the call, and the app asks again with the answer. So an answer concerns only the value
/// that this client gets.
struct ValueQuestion {
    /// Most functions that an app may name.
    private static let mostFunctions = 64
    /// Most answers of a question, which bounds the rounds.
    static let mostAnswers = 32
    /// Most bytes of all answers together.
    static let largestAnswers = 256 << 10

    let key: String
    let type: TypedValue
    /// Id of the container.
    let container: String
    /// The functions that the app has.
    private let functions: Set<String>
    /// Answers by the ids of their calls. Those of calls that are not made are never looked at.
    private let answers: [String: JSONValue]

    /// Reads a question.
    init(_ body: JSONValue) throws(ControlRefusal) {
        key = try body.required("key", try body.text("key"))
        container = try body.required("container", try body.text("container"))
        type = try TypedValue(named: try body.text("type") ?? "string")
        functions = try body.functionNames(most: ValueQuestion.mostFunctions)
        let given = try body.required("answers", (body["answers"] ?? [:]).members)
        guard given.count <= ValueQuestion.mostAnswers else {
            throw .bad("answers must have at most \(ValueQuestion.mostAnswers) members")
        }
        let size = given.reduce(0) { $0 + $1.value.description.utf8.count }
        guard size <= ValueQuestion.largestAnswers else {
            throw ControlRefusal(
                413, "too_large",
                "the answers have \(size) bytes; at most \(ValueQuestion.largestAnswers) are allowed")
        }
        answers = Dictionary(given.map { ($0.key, $0.value) }) { _, last in last }
    }

    /// The value, or the call whose answer it needs.
    ///
    /// - Parameters:
    ///   - document: the document in force; nil without a document.
    ///   - known: answers of the configuration's functions. They are not called for an app: it would decide
    ///     how often.
    /// - Throws: `too_many_calls` if the value needs more answers than a question may have.
    func answer(
        by document: CompiledContainer?, known: [FunctionCall: JSONValue]
    ) throws(ControlRefusal) -> JSONValue {
        let ofApp = AppFunctions(functions) { answers[$0.id] }
        let valuation =
            document?.value(ofKey: key, askingApp: ofApp) { known[$0] ?? .null } ?? .missing
        var value: JSONValue?
        switch valuation {
        case .value(let found): value = type.convert(found)
        case .missing, .needsEvent: break
        case .needs(let calls):
            guard answers.count + calls.count <= ValueQuestion.mostAnswers else {
                throw ControlRefusal(
                    400, "too_many_calls",
                    "\(key) needs more than \(ValueQuestion.mostAnswers) answers of the app")
            }
            return ["key": .string(key), "calls": .array(calls.map(ValueQuestion.json))]
        }
        return [
            "key": .string(key), "value": value ?? type.standard, "missing": .bool(value == nil),
            "calls": [],
        ]
    }

    /// A call as the app gets it.
    private static func json(_ call: FunctionCall) -> JSONValue {
        ["id": .string(call.id), "function": .string(call.function), "parameters": call.parameters]
    }
}

extension TypedValue {
    /// The type of a name; a refusal for an unknown one.
    init(named name: String) throws(ControlRefusal) {
        guard let type = TypedValue(rawValue: name) else {
            let names = TypedValue.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlRefusal(400, "out_of_range", "the type must be one of \(names)")
        }
        self = type
    }
}

extension JSONValue {
    /// The member `functions`: names; none if it is missing.
    func functionNames(most: Int) throws(ControlRefusal) -> Set<String> {
        let names = (self["functions"] ?? []).array?.compactMap(\.string)
        guard let names, names.count == self["functions"]?.array?.count ?? 0, names.count <= most,
            names.allSatisfy({ $0.utf8.count <= DocumentLimits.nameBytes })
        else {
            throw .bad(
                "functions must be a list of at most \(most) names of \(DocumentLimits.nameBytes) bytes")
        }
        return Set(names)
    }
}
