import Testing

@testable import SpoolshipClient

/// The client's side of the rounds by which a value is evaluated, against an agent that may be another program.
@Suite("Rounds for values that functions of the app decide")
struct ValueRoundsTests {
    private static func response(_ text: String) throws -> [String: JSONText.Value] {
        guard case .object(let members)? = JSONText.read(text) else { throw Failure() }
        return members
    }

    private struct Failure: Error {}

    private static func call(_ id: String, _ function: String, _ parameters: String = "{}") -> String {
        #"{"calls":[{"id":"\#(id)","function":"\#(function)","parameters":\#(parameters)}]}"#
    }

    /// A function that answers with its parameter `n`.
    private static func handler(_ name: String) -> FunctionCallMacroHandler? {
        guard name == "f" else { return nil }
        return { (_: String, parameters: DataLayerValue) -> DataLayerValue? in parameters["n"] }
    }

    private static func code(_ rounds: inout ValueRounds, _ text: String) throws -> AnalyticsError.Code? {
        let response = try response(text)
        do throws(AnalyticsError) {
            _ = try rounds.take(response, handler: handler)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("tm14: the app's answers are added to the question until the response has the value")
    func rounds() throws {
        var rounds = ValueRounds("a \"key\"", type: "string", container: "GTM-1", functions: ["g", "f"])
        let head = #"{"key":"a \"key\"","type":"string","container":"GTM-1","functions":["f","g"],"answers":"#
        #expect(rounds.question == head + "{}}")
        let first = try Self.response(Self.call("01", "f", #"{"n":{"x":[1,2.5,null,"é"]}}"#))
        #expect(try !rounds.take(first, handler: Self.handler))
        #expect(rounds.question == head + #"{"01":{"x":[1,2.5,null,"é"]}}}"#)
        // A function without an answer leaves the default.
        #expect(try !rounds.take(try Self.response(Self.call("02", "f")), handler: Self.handler))
        #expect(rounds.question == head + #"{"01":{"x":[1,2.5,null,"é"]},"02":null}}"#)
        let last = try Self.response(#"{"key":"a","value":"hello","missing":false,"calls":[]}"#)
        #expect(try rounds.take(last, handler: Self.handler))
    }

    @Test("a program that is no agent cannot keep the app asking, or call what it has not registered")
    func hostile() throws {
        var rounds = ValueRounds("k", type: "string", container: "GTM-1", functions: ["f"])
        #expect(try Self.code(&rounds, Self.call("01", "other")) == .agentUnavailable)
        #expect(try Self.code(&rounds, #"{"calls":[1]}"#) == .agentUnavailable)
        #expect(try Self.code(&rounds, #"{"calls":[{"function":"f"}]}"#) == .agentUnavailable)
        #expect(try Self.code(&rounds, Self.call("01", "f", #"{"n":1}"#)) == nil)
        #expect(try Self.code(&rounds, Self.call("01", "f", #"{"n":1}"#)) == .agentUnavailable)
        for number in 1..<ValueRounds.most {
            #expect(try Self.code(&rounds, Self.call("x\(number)", "f", #"{"n":1}"#)) == nil)
        }
        #expect(try Self.code(&rounds, Self.call("last", "f", #"{"n":1}"#)) == .agentUnavailable)
        var other = ValueRounds("k", type: "string", container: "GTM-1", functions: ["f"])
        let infinite: FunctionCallMacroHandler = { _, _ in .double(.infinity) }
        let call = try Self.response(Self.call("01", "f"))
        #expect(throws: AnalyticsError.self) { try other.take(call) { _ in infinite } }
    }
}
