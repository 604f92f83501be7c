/// A container of the agent: values, evaluated when they are asked for, and refreshes with their result.
///
/// It asks over the agent's control socket, which root, the agent's user and the members of its group may
/// use. Other apps read what the agent publishes: `ContainerValues`. Thread-safe. Each request waits for the
/// agent, at most `timeout`.
public struct AgentContainer: Sendable {
    /// The document that `open` waits for.
    public enum OpenType: Sendable, CaseIterable {
        /// Any document but the default one, however old.
        case preferNonDefault
        /// A document that was confirmed recently, as the container's settings say.
        case preferFresh
        /// The document in force at the time of the call, without waiting.
        case immediate
    }

    /// How a refresh ended.
    public enum RefreshEnd: Sendable, Equatable {
        /// A document was fetched, or the one in force is still the newest.
        case success(version: Int64)
        /// The document in force stays.
        case failure(RefreshFailure, message: String)
    }

    /// Why a refresh failed.
    public enum RefreshFailure: String, Sendable, CaseIterable {
        /// Nothing was saved from an earlier fetch.
        case noSavedContainer = "no_saved_container"
        /// The saved copy cannot be read or written.
        case ioError = "io_error"
        /// No route leads to the server, or the network is switched off.
        case noNetwork = "no_network"
        /// No answer: name, connection, TLS, time.
        case networkError = "network_error"
        /// The response was neither 200 nor 304.
        case serverError = "server_error"
        /// The document was fetched and refused, for its signature, version, form or expiry date; the message
        /// says which.
        case refused
        /// Any other reason, also of later versions of the agent.
        case unknownError = "unknown_error"
    }

    /// Id of the container, such as `GTM-1234`.
    public let id: String
    /// The app whose tags call functions of this process; nil for none.
    public let app: String?
    /// The control socket.
    let socket: AgentSocket
    /// Functions that macros and tags of the container call. Copies share them.
    let functions = ContainerFunctions()
    /// Time limit of one request.
    private let timeout: Duration

    /// A container of the agent that listens at `socket`. Nothing is asked yet.
    ///
    /// - Parameter app: name of the app whose tags may call functions of this process, as in the spool.
    public init(
        id: String, app: String? = nil, socket: String = "/run/spoolship/control.sock",
        timeout: Duration = .seconds(10)
    ) {
        self.id = id
        self.app = app
        self.socket = AgentSocket(path: socket)
        self.timeout = timeout
    }

    /// Waits until the agent has the wanted document, about `timeout` at most; afterwards the document in
    /// force is used.
    @discardableResult
    public func open(_ type: OpenType = .preferNonDefault, timeout: Duration = .seconds(2))
        throws(AnalyticsError)
        -> Bool
    {
        let deadline = steadyNanoseconds() + timeout.wholeNanoseconds
        while true {
            let state = try state()
            let isDefault = state["source"] == .string("default") || state["source"] == .string("none")
            switch type {
            case .immediate: return true
            case .preferNonDefault where !isDefault: return true
            case .preferFresh where !isDefault && state["fresh"] == .bool(true): return true
            default: break
            }
            guard steadyNanoseconds() < deadline else { return false }
            sleepMilliseconds(20)
        }
    }

    /// The text of a key, evaluated now; `""` if it is missing. Throws `agentUnavailable`, or
    /// `invalidSetting` for an unknown container.
    public func string(forKey key: String) throws(AnalyticsError) -> String {
        guard case .string(let text)? = try value(key, "string") else { return "" }
        return text
    }

    /// The whole number of a key, evaluated now; 0 if it is missing, or is not a whole number. Throws as
    /// `string`.
    public func integer(forKey key: String) throws(AnalyticsError) -> Int64 {
        guard case .integer(let number)? = try value(key, "integer") else { return 0 }
        return number
    }

    /// The number of a key, evaluated now; 0 if it is missing, or is not a number. Throws as `string`.
    public func double(forKey key: String) throws(AnalyticsError) -> Double {
        switch try value(key, "double") {
        case .double(let number)?: return number
        case .integer(let number)?: return Double(number)
        default: return 0
        }
    }

    /// The truth value of a key, evaluated now; false if it is missing, or is not a truth value. Throws as
    /// `string`.
    public func boolean(forKey key: String) throws(AnalyticsError) -> Bool {
        try value(key, "boolean") == .bool(true)
    }

    /// Whether the default document is in force, or no document at all.
    public func isDefault() throws(AnalyticsError) -> Bool {
        let source = try state()["source"]
        return source == .string("default") || source == .string("none")
    }

    /// Time at which the document in force was last confirmed, in milliseconds since 1970; 0 for the default
    /// one.
    public func lastRefreshTime() throws(AnalyticsError) -> Int64 {
        guard case .integer(let time)? = try state()["confirmed_ms"] else { return 0 }
        return time
    }

    /// Asks the agent to fetch the container now, and waits for the result.
    ///
    /// - Throws: as `string`; `invalidSetting` for a container without a URL.
    public func refresh() throws(AnalyticsError) -> RefreshEnd {
        let body = try request("POST", "/v1/containers/refresh", body: "{\"id\":\(EventLine.quoted(id))}")
        guard case .array(let ends)? = body["refreshes"], case .object(let end)? = ends.first,
            case .string(let word)? = end["result"]
        else {
            throw AnalyticsError(
                .agentUnavailable, "the agent's answer has no refresh; is it another version?")
        }
        if word == "success" {
            guard case .integer(let version)? = end["version"] else { return .success(version: 0) }
            return .success(version: version)
        }
        var message = word
        if case .string(let text)? = end["message"], !text.isEmpty {
            message = text
        }
        let isRefusal = ["signature", "version", "form", "expired"].contains(word)
        return .failure(
            isRefusal ? .refused : RefreshFailure(rawValue: word) ?? .unknownError, message: message)
    }

    /// Asks the agent to fetch the container now, and returns at once. `began` is called before the request,
    /// then `ended` once, both on another thread. If the agent does not answer, the failure is
    /// `unknownError`.
    public func refresh(
        began: @escaping @Sendable () -> Void = {}, ended: @escaping @Sendable (RefreshEnd) -> Void
    ) {
        let hasStarted = startThread {
            began()
            do throws(AnalyticsError) { ended(try refresh()) } catch {
                ended(.failure(.unknownError, message: error.message))
            }
        }
        if !hasStarted {
            ended(.failure(.unknownError, message: "the system has no thread left"))
        }
    }

    /// The value of a key as a type; nil if it is missing. While the agent meets a function of this app, it
    /// is asked again with the function's answer.
    private func value(_ key: String, _ type: String) throws(AnalyticsError) -> JSONText.Value? {
        let names = functions.macroNames
        if !names.isEmpty {
            var rounds = ValueRounds(key, type: type, container: id, functions: names)
            while true {
                let response = try request("POST", "/v1/values", body: rounds.question)
                if try rounds.take(response, handler: functions.macro) { return response["value"] }
            }
        }
        let query = "key=\(AgentContainer.encoded(key))&type=\(type)&container=\(AgentContainer.encoded(id))"
        return try request("GET", "/v1/values?\(query)")["value"]
    }

    /// The agent's description of the container.
    private func state() throws(AnalyticsError) -> [String: JSONText.Value] {
        try request("GET", "/v1/containers/\(AgentContainer.encoded(id))")
    }

    /// Sends a request; returns the object of a successful response.
    private func request(
        _ method: String, _ target: String, body: String = ""
    ) throws(AnalyticsError) -> [String: JSONText.Value] {
        let answer: AgentSocket.Answer
        do throws(AgentSocket.Failure) {
            answer = try socket.request(
                method, target, body: body, until: steadyNanoseconds() + timeout.wholeNanoseconds)
        } catch {
            switch error {
            case .notAvailable(let reason), .noAnswer(let reason), .refused(_, let reason):
                throw AnalyticsError(.agentUnavailable, reason)
            }
        }
        guard case .object(let members)? = JSONText.read(answer.body) else {
            throw AnalyticsError(
                .agentUnavailable, "the agent answered \(method) \(target) with \(answer.status)")
        }
        guard answer.status == 200 else {
            var message = "the agent answered \(method) \(target) with \(answer.status)"
            if case .object(let error)? = members["error"], case .string(let text)? = error["message"] {
                message = text
            }
            let isMistake = [400, 404, 413].contains(answer.status)
            throw AnalyticsError(isMistake ? .invalidSetting : .agentUnavailable, message)
        }
        return members
    }

    /// A text as part of a request's target: percent-encoded except the unreserved characters (RFC 3986,
    /// section 2.3).
    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
            if isPlain || "-._~".utf8.contains(byte) { return String(UnicodeScalar(byte)) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
