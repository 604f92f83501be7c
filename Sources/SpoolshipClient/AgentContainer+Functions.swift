/// Gives the value of a macro: nil, or null, leaves it to the macro's default.
///
/// - Parameters:
///   - name: name of the function.
///   - parameters: its parameters, a map.
public typealias FunctionCallMacroHandler =
    @Sendable (_ name: String, _ parameters: DataLayerValue) -> DataLayerValue?

/// Does what a tag asks for.
///
/// - Parameters:
///   - name: name of the function.
///   - parameters: its parameters, a map.
public typealias FunctionCallTagHandler = @Sendable (_ name: String, _ parameters: DataLayerValue) -> Void

extension AgentContainer {
    /// Registers the function of `function_call` macros with `"by": "app"`; nil ends that. The handler is
    /// called by the getters of this container, on their thread, whenever a value needs it: once for equal
    /// parameters in a call of a getter. Getters of other apps, and events, do not call it.
    public func registerFunctionCallMacroHandler(_ handler: FunctionCallMacroHandler?, forMacro name: String)
    {
        functions.setMacro(handler, name)
    }

    /// Registers the function of `function` tags with `"by": "app"`; nil ends that. `listeningProblem` says
    /// why no calls come.
    ///
    /// The handler is called once an event or a push of this app is in the agent's queue and the tag fires,
    /// on a thread of the library, one call at a time, each at most once. Calls while this process does not
    /// listen, or reads too slowly, are lost, and the agent counts them. Of several processes of the app one
    /// gets each call. A handler may track and push.
    ///
    /// - Throws: `invalidSetting` if the container was made without an app.
    public func registerFunctionCallTagHandler(_ handler: FunctionCallTagHandler?, forTag name: String)
        throws(AnalyticsError)
    {
        guard let app else {
            throw AnalyticsError(.invalidSetting, "name the app: AgentContainer(id:, app:)")
        }
        functions.setTag(handler, name)
        functions.listen(for: app, to: id, at: socket)
    }

    /// Whether the agent gives this process calls of tags now.
    public var isListening: Bool { functions.isListening }

    /// Why the agent gives no calls of tags, as far as it was tried: it does not run, this user may not use
    /// its socket, the container is unknown, or too many listen. Nil while it gives calls.
    public var listeningProblem: AnalyticsError? { functions.problem }

    /// Sets the function that is called on a thread of the library at each change: with nil if the agent now
    /// gives calls, otherwise with the reason. After a failure the library reconnects in a tenth of a second,
    /// then after twice as long each time, 30 seconds at most, until a connection has lasted a second.
    public func observeListening(_ observer: (@Sendable (AnalyticsError?) -> Void)?) {
        functions.setObserver(observer)
    }

    /// Number of calls that arrived for a function that was already removed, so that no handler ran.
    public var unhandledCalls: Int { functions.unhandled }

    /// Ends the calls of tags and macros, also for copies of this container. Calls that the agent has sent by
    /// then are counted in `unhandledCalls` a moment later; it counts those that it could not send.
    public func close() { functions.removeAll() }
}

/// The waits between attempts to connect, each twice as long as the one before: a machine without an agent
/// must not be kept busy. A value without a clock, which tests can read at once.
struct ReconnectWait {
    /// The next wait.
    private var next: Int32 = 100
    /// The longest wait.
    private static let most: Int32 = 30_000

    /// The next wait in milliseconds.
    mutating func take() -> Int32 {
        defer { next = min(next * 2, ReconnectWait.most) }
        return next
    }

    /// A connection has lasted a second: the next wait is short.
    mutating func reset() { self = ReconnectWait() }
}

/// The functions of an app for one container, and the thread that waits for calls of tags.
final class ContainerFunctions: @unchecked Sendable {
    // Unchecked: what changes is only used with the monitor held.
    /// Guards all fields below.
    private let monitor = Monitor()
    /// Functions of macros, by name.
    private var macros: [String: FunctionCallMacroHandler] = [:]
    /// Functions of tags, by name.
    private var tags: [String: FunctionCallTagHandler] = [:]
    /// Counts changes of the names in `tags`: a connection for other names is made anew.
    private var changes = 0
    /// Wakes the thread; nil while none runs.
    private var thread: WakePipe?
    /// The number of changes for which the agent has confirmed the connection; nil without one.
    private var confirmed: Int?
    /// Why there is no connection; nil before the first attempt.
    private var reason: AnalyticsError?
    /// Called with the reason, or with nil.
    private var observer: (@Sendable (AnalyticsError?) -> Void)?
    /// Value of `reason` at the last report; nil before the first report.
    private var told: AnalyticsError??
    /// Number of calls for functions that were gone.
    private var callsUnhandled = 0

    /// Most bytes of a call. The agent gives at most 64 KiB.
    private static let largestCall = 256 << 10

    deinit { thread?.wake() }

    /// Whether calls of tags arrive.
    var isListening: Bool { monitor.sync { confirmed == changes } }
    /// Why they do not, as far as is known.
    var problem: AnalyticsError? { monitor.sync { reason } }
    /// Number of calls for functions that were gone.
    var unhandled: Int { monitor.sync { callsUnhandled } }
    /// Names of the functions of macros.
    var macroNames: [String] { monitor.sync { Array(macros.keys) } }

    /// The function of macros with a name.
    func macro(_ name: String) -> FunctionCallMacroHandler? { monitor.sync { macros[name] } }

    /// Sets or removes the function of macros with a name.
    func setMacro(_ handler: FunctionCallMacroHandler?, _ name: String) {
        monitor.sync { macros[name] = handler }
    }

    /// Sets or removes the function of tags with a name.
    func setTag(_ handler: FunctionCallTagHandler?, _ name: String) {
        monitor.sync {
            if (tags[name] == nil) != (handler == nil) {
                changes += 1
                thread?.wake()
            }
            tags[name] = handler
        }
    }

    /// Sets or removes the observer of the connection.
    func setObserver(_ observer: (@Sendable (AnalyticsError?) -> Void)?) {
        monitor.sync { self.observer = observer }
    }

    /// Removes all functions; the thread ends.
    func removeAll() {
        monitor.sync {
            macros = [:]
            tags = [:]
            changes += 1
            confirmed = nil
            thread?.wake()
        }
    }

    /// Starts the thread unless it runs.
    func listen(for app: String, to container: String, at socket: AgentSocket) {
        let wake = monitor.sync { () -> WakePipe? in
            // Without functions no thread starts, so none may be noted as running.
            guard thread == nil, !tags.isEmpty else { return nil }
            thread = WakePipe()
            return thread
        }
        guard let wake, !startThread({ [weak self] in Self.run(app, container, socket, wake) { self } })
        else { return }
        monitor.sync { thread = nil }
    }

    /// The thread: connects, and reads calls, until there are no functions of tags or the object is gone.
    private static func run(
        _ app: String, _ container: String, _ socket: AgentSocket, _ wake: WakePipe,
        _ functions: () -> ContainerFunctions?
    ) {
        var pause = ReconnectWait()
        while let (names, change) = functions()?.wanted() {
            let list = names.map(EventLine.quoted).joined(separator: ",")
            let body =
                "{\"app\":\(EventLine.quoted(app)),\"container\":\(EventLine.quoted(container)),"
                + "\"functions\":[\(list)]}"
            var reason = AnalyticsError(.agentUnavailable, "the agent has ended the connection")
            var confirmedAt: Int64?
            do throws(AgentSocket.Failure) {
                try socket.stream(
                    "POST", "/v1/function-calls", body: body, largestLine: largestCall, wake: wake,
                    whileTrue: { functions()?.isCurrent(change) == true }
                ) {
                    if functions()?.take($0, change) == true {
                        confirmedAt = steadyNanoseconds()
                    }
                }
            } catch {
                reason = AnalyticsError(listening: error)
            }
            // Not at the confirmation: what fails right after it would be tried ten times a second.
            if let confirmedAt, steadyNanoseconds() - confirmedAt >= 1_000_000_000 {
                pause.reset()
            }
            guard functions()?.note(nil, reason, change) == true else { continue }
            wake.wait(milliseconds: pause.take())
        }
    }

    /// The names to listen for, and the number of their last change. Nil without names: the
    /// thread must then end.
    private func wanted() -> (names: [String], change: Int)? {
        monitor.sync {
            guard !tags.isEmpty else {
                thread = nil
                return nil
            }
            return (tags.keys.sorted(), changes)
        }
    }

    /// Whether the names are those of a connection.
    private func isCurrent(_ change: Int) -> Bool { monitor.sync { changes == change } }

    /// Notes the change that the agent has confirmed, or nil at the end of a connection, with the reason.
    /// Returns whether the names are still those.
    private func note(_ confirmed: Int?, _ why: AnalyticsError?, _ change: Int) -> Bool {
        let isCurrent = monitor.sync {
            self.confirmed = confirmed
            return changes == change
        }
        if isCurrent {
            tell(why)
        }
        return isCurrent
    }

    /// Sets `reason`, which is nil while calls arrive, and calls the observer if it has changed.
    private func tell(_ why: AnalyticsError?) {
        let observer = monitor.sync {
            reason = why
            guard told != .some(why) else { return nil as (@Sendable (AnalyticsError?) -> Void)? }
            told = .some(why)
            return self.observer
        }
        observer?(why)
    }

    /// Takes a line of the agent: a call, or the confirmation, for which it returns true.
    private func take(_ line: String, _ change: Int) -> Bool {
        guard case .object(let members)? = JSONText.read(line) else { return false }
        if members["listening"] == .bool(true) {
            _ = note(change, nil, change)
            return true
        }
        guard case .string(let name)? = members["function"] else { return false }
        guard let tag = monitor.sync({ tags[name] }) else {
            monitor.sync { callsUnhandled += 1 }
            return false
        }
        tag(name, DataLayerValue(members["parameters"] ?? .object([:])))
        return false
    }
}

extension AnalyticsError {
    /// Why the agent gives no calls.
    fileprivate init(listening failure: AgentSocket.Failure) {
        switch failure {
        case .notAvailable(let reason), .noAnswer(let reason): self.init(.agentUnavailable, reason)
        case .refused(let status, let reason):
            let isMistake = [400, 404, 413].contains(status)
            self.init(
                isMistake ? .invalidSetting : .agentUnavailable,
                reason.isEmpty ? "the agent refused to give calls: \(status)" : reason)
        }
    }
}
